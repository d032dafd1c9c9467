//! The formats. Each dialect knows its own types and lowers them to [`crate::hir`]; none knows
//! the program, the machine or another dialect.
