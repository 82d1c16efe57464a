"""Retired words of the project, what to write instead, and the exceptions with their reasons."""

TEXT_SUFFIXES = frozenset(
    {".py", ".md", ".rst", ".js", ".html", ".css", ".toml", ".yml", ".yaml", ".csv", ".cff", ".service", "Makefile"}
    | {"Containerfile", "run"}
)

# Paths that are not searched. The rules themselves name the retired words.
SKIPPED_FILES = ("tools/language_rules.py", "tests/tools/test_check_language.py", "LICENSE")

_OUTPUT = "name the output: to_response, render_*, format_*, summarize, describe"
_SOURCE = "EvidenceSource, source, sources"
_OBSERVATION = "observation, observations"
_INDEX = "index, user_index"
_REBUILD = "rebuild, rebuilt"
_ENVIRONMENT = "environment; a named environment with settings is a scenario"

# Words of identifiers and of file names.
IDENTIFIER_WORDS = {
    "agree": "load_or_create_model",
    "anew": _REBUILD,
    "belonging": "membership",
    "borrowing": "no_alloc",
    "crowd": "UserBatch, user_batch",
    "departure": "drift_bound",
    "departures": "drift_bound",
    "desk": "AppContext, app",
    "gate": "RequestGuard; split into auth and limits",
    "lend": _SOURCE,
    "lender": _SOURCE,
    "lenders": _SOURCE,
    "lending": _SOURCE,
    "lent": _SOURCE,
    "lesson": _OBSERVATION,
    "lessons": _OBSERVATION,
    "loan": _SOURCE,
    "look": "theme, ui, view",
    "looking": "dashboard",
    "most": "max",
    "nobody": "name the value: unassigned, none",
    "outline": "GroupSummary, group_summary",
    "picture": "StateView, chart, image",
    "place": _INDEX,
    "places": _INDEX,
    "remembered": "cached",
    "renew": _REBUILD,
    "renewal": _REBUILD,
    "renewing": _REBUILD,
    "reword": "redact, Redaction",
    "room": "BufferPool, workspace, reserve",
    "says": "statement",
    "settle": "rebuild_derived",
    "summing": "inline_fastmath",
    "tally": "EventStats",
    "tell": _OUTPUT,
    "telling": _OUTPUT,
    "tells": _OUTPUT,
    "tidy": "wal_checkpoint",
    "told": _OUTPUT,
    "unsure": "in_doubt",
    "untidy": "wal_pending",
    "vacated": "pending_erasure",
    "welcome": "assign",
    "whoever": "name the role",
    "witness": "blocking_member",
    "world": _ENVIRONMENT,
    "worlds": _ENVIRONMENT,
}

_PER = "write 'per': 5 µs per round"

# Phrases of comments, strings and documentation: regular expressions.
PHRASES = {
    r"\b(told|telling|says nothing)\b": _OUTPUT,
    r"\banew\b": "again, rebuilt",
    r"\b(whoever|somebody|nobody|whomsoever)\b": "name the role: the user, the caller, no user",
    r"\b(lender|lenders|lending|lent)\b": _SOURCE,
    r"\blessons?\b": _OBSERVATION,
    r"\b(mended|tidied|untidy|slip of the pen|welcomed)\b": "use the technical term",
    r"\b(goes on as|is there in all|at hand|worked out|made up)\b": "use the technical term: computed, available",
    r"\b(worlds?)\b": _ENVIRONMENT,
    r"\b(rooms|crowds?|desk)\b": "name the mechanism",
    r"\bas though (it|they) had never\b": "without the user",
    r"\bof one's own\b": "custom, own",
    r"\b(µs|us|ms|bytes|numbers|rounds|rows?|times|seconds|events|requests|decisions|rewards|verdict|[MG]iB) an? "
    r"(round|user|second|arm|claim|decision|line|repeat|policy|job|day|row|request|minute)\b": _PER,
    r"\b(a|an|one|each|every) \w+ a (command|policy|user|line|claim|file|round|repeat|row|job|panel|machine)\b": _PER,
}

# Exceptions: path pattern, word (regular expression, whole match), reason.
ALLOWED = (
    ("src/locb/kernels/eloc/*", "gate", "the gate of ELOC's model: the mixing weights of its three predictors"),
    ("src/locb/policies/eloc.py", "gate", "the gate of ELOC's model"),
    ("CHANGELOG.md", "[Ll]enders?|worlds?", "names of earlier versions in the list of renamed interfaces"),
    ("tests/policies/test_eloc.py", "gate", "the gate of ELOC's model"),
    ("src/locb/policies/base/file_format.py", "tell", "a method of file objects"),
    ("src/locb/policies/state/eloc_state.py", "gate", "the gate of ELOC's model"),
    ("benchmarks/eloc_gate.py", "gate", "the gate of ELOC's model"),
    ("tests/naive.py", "gate", "the gate of ELOC's model"),
    ("tests/service/store/test_format.py", "anew", "a setting of store format 1"),
    ("stress/postgres.py", "nobody", "an account of the operating system"),
)
