"""The nouns, frozen, in the order of the flow.

trigger, observation, usage, history, demand, option, recommendation, proposal, change, outcome, report. A later noun
may mention an earlier one, never the reverse. Import each from its own module.
"""
