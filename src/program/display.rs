//! A program as text: one line a state, for `compile -o table` and for snapshots.
