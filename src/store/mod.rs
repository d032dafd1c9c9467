//! Where runs are kept: the trait, sled, memory, and one contract suite for every store.
//! This room never schedules anything.
