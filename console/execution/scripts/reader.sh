# reader.sh state|follow|log D OP STEP [OFFSET MOST]: what starter.sh answers to these, without the part that acts: it is
# asked every second, and over slow lines too.
reading "${2:-}"
step_name "${3:-}" "${4:-}"
read_verb "${5:-}" "${6:-}"
