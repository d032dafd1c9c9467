//! `appendFile`: rows at the end of a file, exactly once. The run remembers how long the file was
//! after its last append; what is behind that was never committed and is cut off before the next
//! one. It never appends to what it does not know the length of.

use super::folder;
use super::inputs::{Inputs, invalid, mismatch};
use super::{Attempt, Executor};
use crate::expression::Value;
use crate::model::{Fault, Request, fault_kind};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The executor of `appendFile`.
#[derive(Default)]
pub(super) struct AppendFile {
    /// Who appended last to each file in this process. It is held while a file is written, so that
    /// an attempt that was cut and the next one do not mix.
    last: Arc<Mutex<HashMap<PathBuf, Last>>>,
}

struct Last {
    key: String,
    length: u64,
}

/// What one attempt does.
struct Job {
    path: PathBuf,
    shown: String,
    /// How long the file was when the run last committed an append.
    known: Option<u64>,
    /// Only say how long the file is.
    measure: bool,
    data: Vec<u8>,
    rows: usize,
    key: String,
}

impl Executor for AppendFile {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(async {
            let job = Job::read(request)?;
            let last = Arc::clone(&self.last);
            let shown = job.shown.clone();
            let done = tokio::task::spawn_blocking(move || {
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                job.run(&mut last)
            });
            match done.await {
                Ok(outcome) => outcome,
                Err(error) => Err(Fault::new(
                    fault_kind::INPUT,
                    format!("appending to {shown} broke off: {error}"),
                )),
            }
        })
    }
}

impl Job {
    fn read(request: &Request) -> Result<Self, Fault> {
        let inputs = Inputs::of(request)?;
        let shown = inputs.required_text("path")?.to_owned();
        let known = match inputs.get("files").and_then(|files| files.get(&shown)) {
            None => None,
            Some(length) => Some(
                length
                    .as_int()
                    .and_then(|length| u64::try_from(length).ok())
                    .ok_or_else(|| mismatch("files", "a map of lengths", length))?,
            ),
        };
        let (data, rows) = data(inputs)?;
        Ok(Self {
            path: folder::resolved(&shown),
            shown,
            known,
            measure: inputs.get("measure") == Some(&Value::Bool(true)),
            data,
            rows,
            key: request.key.clone(),
        })
    }

    fn run(self, last: &mut HashMap<PathBuf, Last>) -> Result<Value, Fault> {
        let told = |error: io::Error| {
            let message = format!("cannot write {}: {error}", self.shown);
            Fault::new(fault_kind::INPUT, message)
        };
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(&self.path)
            .map_err(told)?;
        let now = file.metadata().map_err(told)?.len();
        if self.measure {
            return Ok(self.output(now));
        }
        let from = self.known.unwrap_or(0);
        if now < from {
            return Err(invalid(format!(
                "{} has {now} bytes, but {from} were written by this run: it was changed",
                self.shown
            )));
        }
        if let Some(other) = last.get(&self.path)
            && self.known.is_some()
            && other.length > from
            && other.key != self.key
        {
            return Err(invalid(format!(
                "another action appended to {} at the same time: rows for one file must be \
                 appended one after the other",
                self.shown
            )));
        }
        write(&mut file, from, &self.data).map_err(told)?;
        let length = from + self.data.len() as u64;
        let key = self.key.clone();
        last.insert(self.path.clone(), Last { key, length });
        Ok(self.output(length))
    }

    fn output(&self, length: u64) -> Value {
        let length = Value::Int(i64::try_from(length).unwrap_or(i64::MAX));
        let rows = Value::Int(i64::try_from(self.rows).unwrap_or(i64::MAX));
        let files = Value::from_pairs([(self.shown.as_str(), length.clone())]);
        Value::from_pairs([
            ("path", Value::text(&self.shown)),
            ("length", length),
            ("rows", rows),
            ("files", files),
        ])
    }
}

/// Cuts the file to what was committed and puts the data behind it, durably.
fn write(file: &mut File, from: u64, data: &[u8]) -> io::Result<()> {
    file.set_len(from)?;
    file.seek(SeekFrom::Start(from))?;
    file.write_all(data)?;
    file.sync_data()
}

/// The bytes to append and how many rows they are.
fn data(inputs: Inputs<'_>) -> Result<(Vec<u8>, usize), Fault> {
    let line = |value: &Value| {
        let mut line = value.to_json();
        line.push('\n');
        line
    };
    match (inputs.get("rows"), inputs.get("text")) {
        (Some(Value::Array(rows)), _) => {
            let text: String = rows.iter().map(line).collect();
            Ok((text.into_bytes(), rows.len()))
        }
        (Some(other), _) => Err(mismatch("rows", "a list", other)),
        (None, Some(Value::String(text))) => Ok((text.as_bytes().to_vec(), 1)),
        (None, Some(other)) => Err(mismatch("text", "a string", other)),
        // Null is a row too.
        (None, None) => Ok(match inputs.all().find(|(key, _)| *key == "row") {
            Some((_, row)) => (line(row).into_bytes(), 1),
            None => (Vec::new(), 0),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::AppendFile;
    use crate::action::Executor;
    use crate::expression::Value;
    use crate::model::{Fault, Request};
    use std::path::Path;

    async fn append(executor: &AppendFile, key: &str, inputs: &str) -> Result<Value, Fault> {
        let request = Request {
            executor: "appendFile".into(),
            action: "a".into(),
            inputs: Value::from_json(inputs).unwrap(),
            key: key.into(),
            attempt: 1,
            timeout_ms: None,
        };
        executor.execute(&request).await
    }

    fn inputs(path: &Path, known: Option<u64>, row: &str) -> String {
        let path = serde_json::to_string(path.to_str().unwrap()).unwrap();
        let files = known.map_or("{}".to_owned(), |known| format!("{{{path}: {known}}}"));
        format!(r#"{{"path": {path}, "row": {row}, "files": {files}}}"#)
    }

    #[tokio::test]
    async fn what_was_not_committed_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.jsonl");
        std::fs::write(&path, "of an earlier run\n").unwrap();
        let text = || std::fs::read_to_string(&path).unwrap();
        let one = AppendFile::default();
        let first = append(&one, "k1", &inputs(&path, None, r#"{"n":1}"#))
            .await
            .unwrap();
        assert_eq!(text(), "{\"n\":1}\n");
        assert_eq!(first.get("length"), Some(&Value::from(8_i64)));
        append(&one, "k2", &inputs(&path, Some(8), "2"))
            .await
            .unwrap();
        assert_eq!(text(), "{\"n\":1}\n2\n");
        // The process dies before that is committed; the next one does it again.
        let two = AppendFile::default();
        append(&two, "k2", &inputs(&path, Some(8), "2"))
            .await
            .unwrap();
        append(&two, "k3", &inputs(&path, Some(10), "null"))
            .await
            .unwrap();
        assert_eq!(text(), "{\"n\":1}\n2\nnull\n");
    }

    #[tokio::test]
    async fn two_at_once_and_a_changed_file_are_faults() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.jsonl");
        let executor = AppendFile::default();
        append(&executor, "k1", &inputs(&path, None, "1"))
            .await
            .unwrap();
        append(&executor, "left", &inputs(&path, Some(2), "2"))
            .await
            .unwrap();
        let other = append(&executor, "right", &inputs(&path, Some(2), "3")).await;
        assert!(other.unwrap_err().message.contains("at the same time"));
        std::fs::write(&path, "").unwrap();
        let changed = append(&executor, "k4", &inputs(&path, Some(4), "4")).await;
        assert!(changed.unwrap_err().message.contains("it was changed"));
    }
}
