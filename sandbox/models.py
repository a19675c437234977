"""botocore's service models, read and parsed once for the process and shared by all sessions.

Each session of botocore has a loader of its own, and each client parses its service's model anew. An account is opened
for each test, and with each one a dozen clients: without this, reading models is a third of the time, and the garbage
that they leave is as much again. Clients of one session share these very objects in botocore itself, so that nothing
may change them. Nothing here answers a request. What else each request would work out again is kept here, too.
"""

import inspect
import os
import threading
from collections import defaultdict, deque
from collections.abc import Iterable
from copy import copy, deepcopy
from functools import cache
from typing import Any
from unittest.mock import patch

from botocore import hooks, httpsession, regions, useragent
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.client import BaseClient, ClientCreator, ClientMeta
from botocore.endpoint_provider import EndpointProvider
from botocore.exceptions import OperationNotPageableError
from botocore.loaders import JSONFileLoader, Loader
from botocore.model import ServiceModel
from botocore.paginate import Paginator
from moto.core import common_models, responses
from moto.core import models as core_models
from moto.core.base_backend import BackendDict
from moto.dynamodb.comparisons import ConditionExpressionParser
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.dynamodb.models.table import StreamShard, Table

from rightsizer.aws.session import Session

_accepts_kwargs: Any = vars(hooks)["accepts_kwargs"]
_deep: Any = vars(DynamoType)["__deepcopy__"]
_cast: Any = vars(DynamoType)["cast_value"].fget
_load_file: Any = vars(JSONFileLoader)["_load_file"]
_create_methods: Any = vars(ClientCreator)["_create_methods"]
_sanitised: Any = useragent.sanitize_user_agent_string_component
_canonical: Any = vars(SigV4Auth)["canonical_request"]
_query_all: Any = vars(Table)["query"]
_lexed: Any = vars(ConditionExpressionParser)["_lex_condition_expression"]
_parsed_anew: Any = vars(ConditionExpressionParser)["parse"]
_new_client: Any = vars(Session)["_make"]
_register_retries: Any = vars(ClientCreator)["_register_retries"]
_Handlers: Any = vars(hooks)["_PrefixTrie"]
_remove_item: Any = vars(_Handlers)["remove_item"]
_transact_all: Any = vars(DynamoDBBackend)["transact_write_items"]
_writing = threading.local()


class _ByPath:
    """What loaders know, shared by those that search the same folders."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], dict[Any, Any]] = {}

    def __get__(self, loader: Any, owner: type) -> dict[Any, Any]:
        return self._known.setdefault(tuple(loader._search_paths), {})

    def __set__(self, loader: Any, empty: dict[Any, Any]) -> None:
        """A new loader begins with what others have read."""


@cache
def _read(path: str, open_method: Any) -> Any:
    return _load_file(JSONFileLoader(), path, open_method)


class _Parsed:
    """Service models, rules of addresses and the methods of clients, by the document that they were read from."""

    def __init__(self) -> None:
        self._models: dict[int, tuple[Any, ServiceModel]] = {}
        self._methods: dict[int, tuple[ServiceModel, dict[str, Any]]] = {}
        self._providers: dict[Any, tuple[Any, Any, EndpointProvider]] = {}

    def model(self, creator: Any, service: str, api_version: str | None = None) -> ServiceModel:
        """The model of a service."""
        document = creator._loader.load_service_model(service, "service-2", api_version=api_version)
        if id(document) not in self._models:
            self._models[id(document)] = document, ServiceModel(document, service_name=service)
        return self._models[id(document)][1]

    def provider(self, ruleset_data: Any, partition_data: Any, excluded_params: Any = None) -> EndpointProvider:
        """What finds a service's addresses by the rules of its document."""
        key = id(ruleset_data), id(partition_data), frozenset(excluded_params or ())
        if key not in self._providers:
            made = EndpointProvider(ruleset_data, partition_data, excluded_params)
            self._providers[key] = ruleset_data, partition_data, made
        return self._providers[key][2]

    def methods(self, creator: Any, model: ServiceModel) -> dict[str, Any]:
        """The methods of a client, in a dictionary that the caller may add to."""
        if id(model) not in self._methods:
            self._methods[id(model)] = model, _create_methods(creator, model)
        return dict(self._methods[id(model)][1])


class _Clients:
    """Clients of the program, each a copy of one that nobody uses: a cold function makes six, as slow as its requests.

    A copy has its own handlers, tries that are left and rate of requests; what it only reads is shared.
    """

    def __init__(self) -> None:
        self._unused: dict[Any, Any] = {}

    def make(self, session: Any, service: str, *given: Any) -> Any:
        """The client of a service for a session, as `Session` makes it."""
        if service == "s3":  # its handlers know the client that they were made for
            return _new_client(session, service, *given)
        about = session._endpoint_url, session._session.profile, repr(session._config.retries)
        read = frozenset(one for one in os.environ.items() if one[0].startswith("AWS_") and "_LAMBDA_" not in one[0])
        key = service, given, about, read
        if key not in self._unused:
            with patch.object(ClientCreator, "_register_retries", lambda creator, client: None):
                self._unused[key] = _new_client(session, service, *given)
        return self._copy(self._unused[key])

    def _copy(self, unused: Any) -> Any:
        about, found = unused.meta, object.__new__(type(unused))
        events = copy(about.events)
        vars(found).update(vars(unused))
        found.meta = ClientMeta(
            events, about.config, about.endpoint_url, about.service_model, about.method_to_api_mapping, about.partition
        )
        for name, part in (("_endpoint", unused._endpoint), ("_ruleset_resolver", unused._ruleset_resolver)):
            if part is not None:  # a service of a model of our own has no rules of addresses
                setattr(found, name, copy(part))
                getattr(found, name)._event_emitter = events
        _register_retries(object.__new__(ClientCreator), found)
        return found


class _Aliases:
    """Names of events as they were before services were renamed: one table for all clients, as botocore has one."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def __get__(self, emitter: Any, owner: type) -> dict[str, str]:
        return self._known

    def __set__(self, emitter: Any, empty: dict[str, str]) -> None:
        """A new client begins with what others have looked up."""


def _takes_any(handler: Any) -> bool:
    """Whether a handler takes any named argument, which botocore asks of each handler of each client."""
    code = getattr(handler, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
    return bool(code.co_flags & inspect.CO_VARKEYWORDS) if code is not None else bool(_accepts_kwargs(handler))


def _copied(trie: Any, node: dict[str, Any]) -> dict[str, Any]:
    """A copy of handlers by the parts of their events' names."""
    found = dict(node)
    for key, value in node.items():
        if isinstance(value, hooks.NodeList):
            found[key] = hooks.NodeList(value.first[:], value.middle[:], value.last[:])
        elif isinstance(value, dict):
            found[key] = _copied(trie, value) if value else {}
    return found


def _same_handlers(trie: Any) -> Any:
    """The copy of a session's handlers for a client: the very same ones, of which no client changes any in place."""
    found = object.__new__(type(trie))
    found._root = trie._root
    return found


def _append_handler(trie: Any, event: str, handler: Any, section: int = 1) -> None:
    """Another handler of an event: what leads to it is copied, since other clients have the same."""
    node = trie._root = {**trie._root, "children": dict(trie._root["children"])}
    for part in event.split("."):
        known = node["children"].get(part) or {"chunk": part, "values": None, "children": {}}
        node["children"][part] = {**known, "children": dict(known["children"])}
        node = node["children"][part]
    before = node["values"] or hooks.NodeList([], [], [])
    node["values"] = hooks.NodeList(*([*one, handler] if at == section else one for at, one in enumerate(before)))


def _remove_handler(trie: Any, event: str, handler: Any) -> None:
    """One handler less, in handlers of the client's own."""
    trie._root = _copied(trie, trie._root)
    _remove_item(trie, event, handler)


def _value(found: Any) -> Any:
    """What a value of a table is compared by. Most are texts, of which moto asks last."""
    return found.value if found.type == "S" else _cast(found)


def _same_value(found: DynamoType, memo: dict[int, Any]) -> DynamoType:
    """The copy of a value of a table. Only lists, maps and sets are ever changed in place; others are themselves."""
    return _deep(found, memo) if found.type in ("L", "M", "SS", "NS", "BS") else found


def _paginator(client: Any, name: str) -> Any:
    """What reads an operation's pages. botocore makes a class with a text of its own for each one that is asked for."""
    if not client.can_paginate(name):
        raise OperationNotPageableError(operation_name=name)
    operation = client._PY_TO_OP_NAME[name]
    model = client.meta.service_model.operation_model(operation)
    return Paginator(getattr(client, name), client._cache["page_config"][operation], model)


def _signed(signer: SigV4Auth, request: Any) -> Any:
    """What is signed. Nobody checks the signature in a header here; that of a link is checked (`sandbox.links`)."""
    return "" if type(signer) in (SigV4Auth, S3SigV4Auth) else _canonical(signer, request)


def _backends_of(backends: Any, account: str) -> Any:
    """What moto has of a service in an account; it looks under a lock whether it has to be made, each time."""
    if not dict.__contains__(backends, account):
        backends._create_account_specific_backend(account)
    return dict.__getitem__(backends, account)


def _made(kind: Any, *_given: Any, **_named: Any) -> Any:
    """An object of moto's. moto remembers each one for ever, which only S3 reads again when an account is left.

    Each transaction copies its table, so that a month of an account with a few rows would fill the machine's memory.
    """
    made = object.__new__(kind)
    if kind.__module__.startswith("moto.s3."):
        kind.instances_tracked.append(made)
    return made


def _same_records(shard: StreamShard, memo: dict[int, Any]) -> StreamShard:
    """The stream of a table that a transaction copies: its records never change, so that they are not copied.

    Each write adds a record: the copies of all of them took nine tenths of the time of a simulated night.
    """
    copied = memo[id(shard)] = copy(shard)
    copied.table = memo.get(id(shard.table), shard.table)
    copied.items = list(shard.items)
    return copied


def _transact(backend: DynamoDBBackend, actions: list[dict[str, Any]]) -> None:
    """A transaction, for which only the rows with the partition keys that it names are copied, to bring them back."""
    named: set[Any] = set()
    for action in actions:
        asked = next(iter(action.values()))
        table, row = backend.tables.get(asked.get("TableName")), asked.get("Key") or asked.get("Item") or {}
        if table is not None and table.hash_key_attr in row:
            named.add((table.name, DynamoType(row[table.hash_key_attr])))
    _writing.rows = named
    try:
        _transact_all(backend, actions)
    finally:
        del _writing.rows


def _same_rows(table: Table, memo: dict[int, Any]) -> Table:
    """The table as each action of a transaction copies it, to bring it back: its rows and its stream may change."""
    copied, named = copy(table), getattr(_writing, "rows", None)
    memo[id(table)] = copied
    copied.items = defaultdict(dict, table.items)
    for key, rows in table.items.items() if named is None else _named_rows(table, named):
        one = isinstance(rows, Item)  # of a table without a sort key
        copied.items[key] = deepcopy(rows, memo) if one else {at: deepcopy(row, memo) for at, row in rows.items()}
    copied.stream_shard = deepcopy(table.stream_shard, memo)
    return copied


def _named_rows(table: Table, named: set[Any]) -> list[tuple[Any, Any]]:
    """The rows of a table with the partition keys that a transaction names."""
    return [(key, table.items[key]) for name, key in named if name == table.name and key in table.items]


def _sorted_rows(table: Table) -> list[Any]:
    """The rows in the order of their keys, compared as texts and numbers and not as moto's values of a table."""
    rows: list[Any] = []
    for one in table.items.values():
        rows += one.values() if table.range_key_attr else [one]

    def key(row: Any) -> tuple[Any, ...]:
        return (_value(row.hash_key), _value(row.range_key)) if row.range_key else (_value(row.hash_key),)

    return sorted(rows, key=key)


def _query(
    table: Table, hash_key: Any, comparison: Any, values: Any, limit: Any, start: Any, forward: Any, parts: Any,
    index: str | None = None, *given: Any, **more: Any,
) -> Any:  # fmt: skip
    """A query over the rows of its key alone: moto sorts and passes all rows of the table."""
    wanted = more.get("hash_key_conditions") or []
    if index and wanted and table.range_key_attr:
        table, every = copy(table), table.items
        found = ((key, _with_values(rows.items(), wanted)) for key, rows in every.items())
        table.items = defaultdict(dict, {key: rows for key, rows in found if rows})
    elif not index and hash_key is not None:
        rows = {hash_key: table.items[hash_key]} if hash_key in table.items else {}
        table = copy(table)
        table.items = defaultdict(dict, rows)
    return _query_all(table, hash_key, comparison, values, limit, start, forward, parts, index, *given, **more)


def _with_values(rows: Iterable[tuple[Any, Any]], wanted: list[tuple[str, DynamoType]]) -> dict[Any, Any]:
    """The rows of an index's key: those whose attributes have these values."""

    def has(row: Item, name: str, value: DynamoType) -> bool:
        found = row.attrs.get(name)
        if found is None or found.type != value.type:
            return False
        return found.value == value.value if value.type == "S" else bool(found == value)

    return {at: row for at, row in rows if all(has(row, name, value) for name, value in wanted)}


@cache
def _words_of(expression: str) -> tuple[Any, ...]:
    return tuple(_lexed(ConditionExpressionParser(expression, None, None)))


def _words(parser: ConditionExpressionParser) -> deque[Any]:
    """The words of a condition, which the program writes in a few ways; moto makes its patterns anew for each word."""
    return deque(_words_of(parser.condition_expression))


class _Conditions:
    """The last conditions, parsed: moto parses each one of a write three times, and asks what it has parsed only."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], tuple[Any, list[str], list[str]]] = {}

    def parse(self, parser: ConditionExpressionParser) -> Any:
        """What moto makes of the condition with its names and values."""
        given = parser.expression_attribute_names, parser.expression_attribute_values
        key = (str(parser.condition_expression), *map(repr, given))
        if key not in self._known:
            if len(self._known) >= 256:
                self._known.clear()
            made = _parsed_anew(parser)
            self._known[key] = made, parser.expr_attr_names_found[:], parser.expr_attr_values_found[:]
        made, names, values = self._known[key]
        parser.expr_attr_names_found, parser.expr_attr_values_found = names[:], values[:]
        return made


@cache
def share() -> None:
    """Let all sessions of the process share what they read."""
    parsed, clients, conditions = _Parsed(), _Clients(), _Conditions()
    for owner, name, new in (
        (JSONFileLoader, "_load_file", lambda _, path, open_method: _read(path, open_method)),
        (Loader, "_cache", _ByPath()),
        (ClientCreator, "_load_service_model", lambda *given: parsed.model(*given)),
        (ClientCreator, "_create_methods", lambda *given: parsed.methods(*given)),
        (Session, "_make", lambda *given: clients.make(*given)),
        (regions, "EndpointProvider", parsed.provider),
        (hooks.EventAliaser, "_alias_name_cache", _Aliases()),
        (hooks, "accepts_kwargs", _takes_any),
        (_Handlers, "__copy__", _same_handlers),
        (_Handlers, "append_item", _append_handler),
        (_Handlers, "remove_item", _remove_handler),
        (httpsession, "create_urllib3_context", cache(httpsession.create_urllib3_context)),
        (useragent, "sanitize_user_agent_string_component", cache(_sanitised)),
        (SigV4Auth, "canonical_request", _signed),
        (DynamoType, "cast_value", property(_value)),
        (core_models, "RESPONSES_METHODS", ()),  # for the library `requests`, which nobody uses here: 1,300 each time
        (responses, "method_names_from_class", cache(responses.method_names_from_class)),
        (BackendDict, "__getitem__", _backends_of),
        (common_models.BaseModel, "__new__", staticmethod(_made)),
        (BaseClient, "get_paginator", _paginator),
        (DynamoType, "__deepcopy__", _same_value),
        (StreamShard, "__deepcopy__", _same_records),
        (Table, "__deepcopy__", _same_rows),
        (DynamoDBBackend, "transact_write_items", _transact),
        (Table, "all_items", _sorted_rows),
        (Table, "query", _query),
        (ConditionExpressionParser, "_lex_condition_expression", _words),
        (ConditionExpressionParser, "parse", lambda parser: conditions.parse(parser)),
    ):
        patch.object(owner, name, new, create=name in ("_cache", "_alias_name_cache", "__deepcopy__")).start()
