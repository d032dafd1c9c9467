//! The path of the control socket.
//! The path of a Unix socket may have about 107 bytes. A socket with a longer path is addressed through the file
//! descriptor of its directory.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The socket's name in the state directory.
pub const NAME: &str = "control.sock";

/// Maximum length of a socket's path that every system allows: BSD's 104 bytes including the null byte.
const MAX_PATH: usize = 103;

/// A state directory, with addresses of the sockets in it.
pub struct StateDirectory {
    path: PathBuf,
    /// The open directory, if its path is too long and sockets are addressed through its file descriptor.
    open: Option<File>,
}

impl StateDirectory {
    /// Opens an existing directory.
    ///
    /// # Errors
    /// If the path is long and the directory cannot be opened.
    pub fn open(path: &Path) -> Result<Self> {
        let long = path.as_os_str().len() + "/control.new/s".len() > MAX_PATH;
        let open = if long { Some(File::open(path)?) } else { None };
        Ok(Self {
            path: path.to_owned(),
            open,
        })
    }

    /// Returns a file's path, for everything except connecting or binding a socket.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns a short address of a socket in this directory. The address is valid while this value lives.
    ///
    /// # Errors
    /// If the path is too long and the system has no `/proc`.
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
