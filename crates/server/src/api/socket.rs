//! Where the control socket is. A socket's path may have about 107 bytes; one in a deeper directory is
//! reached through the directory's descriptor.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The socket's name in the state directory.
pub const NAME: &str = "control.sock";

/// What a socket's path may have on every system: BSD's 104 bytes with the null.
const MAX_PATH: usize = 103;

/// A directory whose sockets can be named.
pub struct StateDirectory {
    path: PathBuf,
    /// It stays open: the descriptor is part of long addresses.
    open: Option<File>,
}

impl StateDirectory {
    /// A directory that exists.
    ///
    /// # Errors
    /// When it cannot be opened, where its path is long.
    pub fn open(path: &Path) -> Result<Self> {
        let long = path.as_os_str().len() + "/control.new/s".len() > MAX_PATH;
        let open = if long { Some(File::open(path)?) } else { None };
        Ok(Self {
            path: path.to_owned(),
            open,
        })
    }

    /// The file's path for everything but sockets.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// An address for a socket in this directory, short enough, for as long as this is open.
    ///
    /// # Errors
    /// When its path is too long, and there is no `/proc`.
    pub fn socket(&self, name: &str) -> Result<PathBuf> {
        let Some(open) = &self.open else {
            return Ok(self.path.join(name));
        };
        let directory = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
        if !directory.exists() {
            let message = format!(
                "{} is too long for a socket: use a shorter --state",
                self.path.display()
            );
            return Err(Error::new(ErrorKind::InvalidFilename, message));
        }
        Ok(directory.join(name))
    }
}
