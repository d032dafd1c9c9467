//! `WINDLASS_TRACE=FILE` writes one line per play: the test, its number of transitions, and a hash of all of them. Two
//! builds that execute runs in the same way write the same lines, sorted by test: `sort -s -k1,1`.

use bincode::Encode;
use bincode::config::standard;
use ring::digest::{Context, SHA256};
use std::fmt::Write;
use std::io::Write as _;

pub struct Trace {
    hash: Context,
    steps: usize,
}

impl Default for Trace {
    fn default() -> Self {
        let hash = Context::new(&SHA256);
        Self { hash, steps: 0 }
    }
}

pub fn wanted() -> bool {
    std::env::var_os("WINDLASS_TRACE").is_some()
}

impl Trace {
    pub fn step(&mut self, all: impl Encode) {
        let bytes = bincode::encode_to_vec(all, standard()).unwrap();
        self.hash.update(&bytes);
        self.steps += 1;
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let Some(file) = std::env::var_os("WINDLASS_TRACE").filter(|_| self.steps > 0) else {
            return;
        };
        let test = std::thread::current();
        let mut line = format!("{} {} ", test.name().unwrap_or("-"), self.steps);
        for byte in self.hash.clone().finish().as_ref() {
            let _ = write!(line, "{byte:02x}");
        }
        let file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(file);
        file.unwrap().write_all((line + "\n").as_bytes()).unwrap();
    }
}
