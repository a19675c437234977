"""What must not change while the code is moved, merged and renamed, as files that are compared.

`data/` holds every recommendation of the labelled cases, the ids of proposals and changes, each kind of stored row, the
JSON of the terminal's commands and the tables of the referee. Sentences are left out: they may become better.

    PYTHONPATH=shared:. .venv/bin/python -m tests.frozen.write              # write the files again (two minutes)
    PYTHONPATH=shared:. .venv/bin/python -m tests.frozen.write --check      # compare, with each difference on a line
    PYTHONPATH=shared:. .venv/bin/python -m tests.frozen.write answers ids  # only these files

A commit that changes an answer on purpose writes the files again and says in its message what changed. The decision is
in docs/decisions/0065-packages-by-capability.md.
"""
