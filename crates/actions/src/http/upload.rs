//! A request body from a file, which is read while it is sent. The sent length is the length of the file at the start
//! of the attempt. The attempt fails if the file becomes shorter while it is sent, or if it has another length when the
//! body is opened (again).

use super::stall::StallWatch;
use crate::execution_context::resolved;
use crate::inputs::{Inputs, invalid};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use ring::digest::{Context as Hash, SHA256};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::fs::File;
use tokio::io::{AsyncRead, ReadBuf};
use windlass_model::model::{BODY_FILE, Fault, fault_kind};
use windlass_value::hex;

/// Number of bytes that are read from the disk at once.
const READ_BYTES: usize = 64 << 10;

/// A file that is the body of requests.
pub(super) struct Upload {
    path: PathBuf,
    shown: String,
    length: u64,
    progress: StallWatch,
}

impl Upload {
    /// Returns the file in the inputs, if they name one.
    pub(super) async fn of(
        inputs: Inputs<'_>,
        progress: &StallWatch,
    ) -> Result<Option<Self>, Fault> {
        let Some(shown) = inputs.path(BODY_FILE)? else {
            return Ok(None);
        };
        if inputs.get("body").is_some() {
            return Err(invalid("`body` and `bodyFile` are both set: remove one"));
        }
        let mut upload = Self {
            path: resolved(shown),
            shown: shown.to_owned(),
            length: 0,
            progress: progress.clone(),
        };
        let found = tokio::fs::metadata(&upload.path).await;
        let found = found.map_err(|error| upload.fault(&error))?;
        if !found.is_file() {
            return Err(invalid(format!("`bodyFile`: {shown} is not a file")));
        }
        upload.length = found.len();
        Ok(Some(upload))
    }

    /// Returns the length of the file, in bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Returns a body that reads the file from its beginning.
    pub(super) async fn body(&self) -> Result<reqwest::Body, Fault> {
        let opened = async {
            let file = File::open(&self.path).await?;
            let length = file.metadata().await?.len();
            Ok((file, length))
        };
        let (file, length) = opened.await.map_err(|error| self.fault(&error))?;
        if length != self.length {
            let what = format!(
                "{} has {length} bytes, and had {} when the request began",
                self.shown, self.length
            );
            return Err(invalid(what).transient());
        }
        Ok(reqwest::Body::wrap(FileBody {
            file,
            left: length,
            bytes: vec![0; READ_BYTES],
            progress: self.progress.clone(),
        }))
    }

    /// Returns the SHA-256 of the file in hexadecimal.
    pub(super) async fn digest(&self) -> Result<String, Fault> {
        let (path, progress) = (self.path.clone(), self.progress.clone());
        let digest = tokio::task::spawn_blocking(move || digest_of(&path, &progress)).await;
        let digest = digest.map_err(|error| Fault::new(fault_kind::INPUT, error.to_string()))?;
        digest.map_err(|error| self.fault(&error))
    }

    fn fault(&self, error: &io::Error) -> Fault {
        invalid(format!("`bodyFile`: cannot read {}: {error}", self.shown))
    }
}

fn digest_of(path: &Path, progress: &StallWatch) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut hash = Hash::new(&SHA256);
    let mut bytes = vec![0; READ_BYTES];
    loop {
        let count = file.read(&mut bytes)?;
        match bytes.get(..count) {
            Some([]) | None => return Ok(hex(hash.finish().as_ref())),
            Some(read) => hash.update(read),
        }
        progress.report();
    }
}

struct FileBody {
    file: File,
    left: u64,
    bytes: Vec<u8>,
    progress: StallWatch,
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        if this.left == 0 {
            return Poll::Ready(None);
        }
        let mut buffer = ReadBuf::new(&mut this.bytes);
        if let Err(error) = ready!(Pin::new(&mut this.file).poll_read(context, &mut buffer)) {
            return Poll::Ready(Some(Err(error)));
        }
        let most = usize::try_from(this.left).unwrap_or(usize::MAX);
        let read = buffer.filled();
        let read = read.get(..read.len().min(most)).unwrap_or(read);
        if read.is_empty() {
            let what = "the file became shorter while it was sent";
            return Poll::Ready(Some(Err(io::Error::other(what))));
        }
        this.left -= read.len() as u64;
        this.progress.report();
        Poll::Ready(Some(Ok(Frame::data(Bytes::copy_from_slice(read)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
