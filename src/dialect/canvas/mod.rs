//! The canvas format: loop nodes in a graph of ports (spec: canvas.md).

mod files;

pub(super) use files::references;
