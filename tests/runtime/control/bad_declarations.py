"""Declarations that must be refused: what is wrong, the text, the place that is named, a part of what is said."""

from __future__ import annotations

P = "[[projects]]\nname = 'p'\nmodel = 'Pepper mini'\n"
M = "[[models]]\nname = 'm'\nengine = 'embedded'\n"
E = "[[engines]]\nname = 'e'\n"
Q = "[[projects]]\nname = 'q'\nmodel = 'Pepper mini'\n"

BAD: dict[str, tuple[str, str, str]] = {
    "a misspelt limit": (
        f"{P}hourly_limti = 5",
        'projects "p".hourly_limti',
        "«hourly_limit»",
    ),
    "a misspelt table": (
        "[[modles]]\nname = 'x'",
        "modles",
        "«models»",
    ),
    "one table instead of a list": (
        "[models]\nname = 'x'",
        "models",
        "[[models]]",
    ),
    "a list of texts": (
        "models = ['x']",
        "models #1",
        "table",
    ),
    "a server table": (
        "[server]\nport = 1",
        "server",
        "crocevia.toml",
    ),
    "no name": (
        "[[models]]\nengine = 'embedded'",
        "models #1.name",
        "missing",
    ),
    "an empty name": (
        "[[models]]\nname = ''\nengine = 'embedded'",
        "models #1.name",
        "empty",
    ),
    "a name with a line break": (
        "[[models]]\nname = \"a\\nb\"\nengine = 'embedded'",
        'models "a\\nb".name',
        "line breaks",
    ),
    "a long name": (
        f"[[recipes]]\nencode = '{'x' * 300}'\ninstructions = 'i'",
        f'recipes "{"x" * 300}".encode',
        "255",
    ),
    "a name that fits no header": (
        "[[projects]]\nname = 'è mia'\nmodel = 'Pepper mini'",
        'projects "è mia".name',
        "header",
    ),
    "a name twice": (
        "[[recipes]]\nencode = 'r'\ninstructions = 'a'\n[[recipes]]\nencode = 'r'\ninstructions = 'b'",
        'recipes "r"',
        "twice",
    ),
    "an unknown engine": (
        "[[models]]\nname = 'm'\nengine = 'nobody'",
        'models "m".engine',
        "no engine",
    ),
    "an unknown reserve": (
        f"{M}reserve = 'x'",
        'models "m".reserve',
        "no model",
    ),
    "its own reserve": (
        f"{M}reserve = 'm'",
        'models "m".reserve',
        "own reserve",
    ),
    "an unknown model": (
        "[[projects]]\nname = 'p'\nmodel = 'x'",
        'projects "p".model',
        "no model",
    ),
    "an agent of no model": (
        "[[agents]]\nname = 'a'\nmodel = 'x'",
        'agents "a".model',
        "no model",
    ),
    "a team led by nobody": (
        "[[teams]]\nname = 't'\norchestrator = 'x'",
        'teams "t".orchestrator',
        "no agent",
    ),
    "a team led by a subagent": (
        "[[agents]]\nname = 'a'\n[[teams]]\nname = 't'\norchestrator = 'a'",
        'teams "t".orchestrator',
        "primary",
    ),
    "a leader made a subagent": (
        "[[agents]]\nname = 'main'\nmode = 'subagent'",
        'teams "main".orchestrator',
        "primary",
    ),
    "an unknown member": (
        "[[teams]]\nname = 't'\norchestrator = 'main'\nmembers = ['x']",
        'teams "t".members',
        "no agent",
    ),
    "a member that leads": (
        "[[teams]]\nname = 't'\norchestrator = 'main'\nmembers = ['main']",
        'teams "t".members',
        "twice",
    ),
    "no such zone": (
        f"{P}timezone = 'Mars/Base'",
        'projects "p".timezone',
        "time zone",
    ),
    "a folder of zones": (
        f"{P}timezone = 'Europe'",
        'projects "p".timezone',
        "time zone",
    ),
    "a path as zone": (
        f"{P}timezone = '../../etc/passwd'",
        'projects "p".timezone',
        "time zone",
    ),
    "no calls an hour": (
        f"{P}hourly_limit = 0",
        'projects "p".hourly_limit',
        "more than 0",
    ),
    "a negative price": (
        f"{M}prices = {{ input = -1, output = 1 }}",
        'models "m".prices.input',
        "0 or more",
    ),
    "a price without its twin": (
        f"{M}prices = {{ input = 1 }}",
        'models "m".prices.output',
        "missing",
    ),
    "an endless budget": (
        f"{P}daily_budget_usd = inf",
        'projects "p".daily_budget_usd',
        "between",
    ),
    "a soft limit above the hard one": (
        f"{P}daily_budget_usd = 1\nsoft_threshold_usd = 2",
        'projects "p".soft_threshold_usd',
        "daily_budget",
    ),
    "a text as a number": (
        f"{P}hourly_limit = 'many'",
        'projects "p".hourly_limit',
        "whole number",
    ),
    "a mode that is none": (
        f"{P}mode = 'x'",
        'projects "p".mode',
        "standard, agent",
    ),
    "a permission that is none": (
        f"{P}permissions = {{ image = true }}",
        'projects "p".permissions.image',
        "«images»",
    ),
    "a rule that is none": (
        "[[agents]]\nname = 'a'\npermissions = { x = 'maybe' }",
        'agents "a".permissions',
        "table",
    ),
    "a tool twice": (
        "[[agents]]\nname = 'a'\ntools = ['x', 'x']",
        'agents "a".tools',
        "twice",
    ),
    "a kind that is none": (
        f"{E}kind = 'magic'",
        'engines "e".kind',
        "anthropic",
    ),
    "an address of no scheme": (
        f"{E}kind = 'llama'\nbase_url = 'ftp://x'",
        'engines "e".base_url',
        "http://",
    ),
    "an address with a password": (
        f"{E}kind = 'llama'\nbase_url = 'http://a:b@x'",
        'engines "e".base_url',
        "user name",
    ),
    "a strange variable": (
        f"{E}kind = 'llama'\napi_key_env = 'a-b'",
        'engines "e".api_key_env',
        "environment",
    ),
    "two sources of a key": (
        f"{E}kind = 'llama'\napi_key_env = 'A'\napi_key = 'abcdefgh'",
        'engines "e".api_key',
        "not both",
    ),
    "a short key": (
        f"{P}key = 'abc'",
        'projects "p".key',
        "at least 8",
    ),
    "a key that is no text": (
        f"{E}kind = 'llama'\napi_key = 12345678",
        'engines "e".api_key',
        "1 to 4096",
    ),
    "one key for two": (
        f"{P}key = 'abcdefgh'\n{Q}key = 'abcdefgh'",
        'projects "q".key',
        "another project",
    ),
    "a script elsewhere": (
        f"{E}kind = 'llama'\nscript = []",
        'engines "e".script',
        "scripted",
    ),
    "a date in a script": (
        f"{E}kind = 'scripted'\nscript = [{{ say = [{{ text = 2026-01-01 }}] }}]",
        'engines "e"',
        "cannot be kept",
    ),
    "a model without its provider's name": (
        f"{E}kind = 'anthropic'\n[[models]]\nname = 'm'\nengine = 'e'",
        'models "m".upstream',
        "missing",
    ),
    "an engine that changes under its model": (
        "[[engines]]\nname = 'embedded'\nkind = 'anthropic'",
        'models "Pepper mini".upstream',
        "missing",
    ),
    "broken TOML": (
        "[[models]\nname = 'canary'",
        "TOML",
        "line 1",
    ),
    "a number of thousand digits": (
        f"{M}context_window = {'9' * 60}",
        'models "m".context_window',
        "between",
    ),
}
