//! Encodes the rows of a file: JSON Lines, a JSON array, or CSV. An append writes only after the committed end of the
//! file, so each format defines how it continues a file of a given length. This module never writes a file.

use crate::inputs::{invalid, mismatch};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use windlass_expression::Value;
use windlass_model::model::Fault;
use windlass_value::nearest;

/// The end of a JSON array. An append to the array overwrites these bytes.
const ARRAY_END: &[u8] = b"\n]\n";

/// Size in bytes of a file with an array without rows.
const EMPTY_ARRAY: u64 = 4;

/// Maximum size in bytes of the first line of a CSV file.
const MAX_HEADER: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RowFormat {
    /// A JSON document per line.
    Lines,
    /// One JSON array, with a row as each element.
    Array,
    /// RFC 4180 with a header; lines end with LF. The columns are the given names. Without given names, they are those
    /// in the file's header; without a header, they are the members of the rows.
    Csv(Option<Vec<String>>),
}

impl RowFormat {
    /// Reads the format of an action.
    ///
    /// # Errors
    /// Returns a fault if the format is unknown, or if `columns` is not a list of distinct names.
    pub(super) fn read(format: Option<&str>, columns: Option<&Value>) -> Result<Self, Fault> {
        let columns = columns.map(column_names).transpose()?;
        match (format.unwrap_or("ndjson"), columns) {
            ("csv", columns) => Ok(Self::Csv(columns)),
            (_, Some(_)) => Err(invalid("`columns` needs `format: csv`")),
            ("ndjson", None) => Ok(Self::Lines),
            ("json", None) => Ok(Self::Array),
            (other, None) => Err(invalid(format!(
                "`format: {other}` is not known: it is ndjson, json or csv"
            ))),
        }
    }
}

fn column_names(value: &Value) -> Result<Vec<String>, Fault> {
    let wrong = || mismatch("columns", "a list of names", value);
    let names = value.as_array().ok_or_else(wrong)?.iter();
    let names = names.map(|name| name.as_str().map(str::to_owned).ok_or_else(wrong));
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    let twice = |name: &&String| names.iter().filter(|other| other == name).count() > 1;
    match names.iter().find(twice) {
        Some(name) => Err(invalid(format!("`columns` has `{name}` twice"))),
        None if names.is_empty() => Err(invalid("`columns` names no column")),
        None => Ok(names),
    }
}

/// The encoded rows of an append.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct EncodedRows {
    pub bytes: Vec<u8>,
    /// Number of bytes before the committed end that are overwritten: the end of a JSON array.
    pub overwritten: u64,
    /// The position in the file at which each row ends.
    pub ends: Vec<u64>,
}

impl EncodedRows {
    pub(super) fn of_text(text: &str) -> Self {
        Self {
            bytes: text.as_bytes().to_vec(),
            ..Self::default()
        }
    }

    /// Returns the length of the file with these rows. `from` is the file's present length.
    pub(super) fn length(&self, from: u64) -> u64 {
        from - self.overwritten + self.bytes.len() as u64
    }
}

/// Encodes the rows for a file whose committed end is `from`. In a simulation there is no file, and no header is read.
///
/// # Errors
/// Returns a fault if the content of the file does not match the format, or if a row does not match the columns.
pub(super) fn encode(
    rows: &[&Value],
    format: &RowFormat,
    from: u64,
    file: Option<&mut File>,
) -> Result<EncodedRows, Fault> {
    match format {
        RowFormat::Lines => lines(rows, from, file),
        RowFormat::Array => array(rows, from),
        RowFormat::Csv(columns) => csv(rows, columns.as_deref(), from, file),
    }
}

fn lines(rows: &[&Value], from: u64, file: Option<&mut File>) -> Result<EncodedRows, Fault> {
    let mut out = EncodedRows::default();
    if !rows.is_empty() && lacks_line_end(file, from)? {
        out.bytes.push(b'\n');
    }
    for row in rows {
        out.bytes.extend_from_slice(row.to_json().as_bytes());
        out.bytes.push(b'\n');
        out.ends.push(from + out.bytes.len() as u64);
    }
    Ok(out)
}

/// Returns true if the last line of the file has no line end, because another program wrote it.
fn lacks_line_end(file: Option<&mut File>, from: u64) -> Result<bool, Fault> {
    let (Some(file), Some(last)) = (file, from.checked_sub(1)) else {
        return Ok(false);
    };
    let mut byte = [0];
    let read = file
        .seek(SeekFrom::Start(last))
        .and_then(|_| file.read_exact(&mut byte));
    match read {
        // The file is shorter than after the last append of this run. `Job::check` reports that.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(invalid(format!("cannot read the last line: {error}"))),
        Ok(()) => Ok(byte != *b"\n"),
    }
}

fn array(rows: &[&Value], from: u64) -> Result<EncodedRows, Fault> {
    let overwritten = match from {
        0 => 0,
        1..EMPTY_ARRAY => return Err(not_an_array()),
        _ if rows.is_empty() => return Ok(EncodedRows::default()),
        _ => ARRAY_END.len() as u64,
    };
    let mut out = EncodedRows {
        overwritten,
        ..EncodedRows::default()
    };
    let mut before: &[u8] = match from {
        0 if rows.is_empty() => b"[",
        0 => b"[\n",
        EMPTY_ARRAY => b"\n",
        _ => b",\n",
    };
    for row in rows {
        out.bytes.extend_from_slice(before);
        out.bytes.extend_from_slice(row.to_json().as_bytes());
        // Count the end of the array, too, so that even the first row of an append ends after the previous end of the
        // file.
        out.ends.push(out.length(from) + ARRAY_END.len() as u64);
        before = b",\n";
    }
    if rows.is_empty() {
        out.bytes.extend_from_slice(before);
    }
    out.bytes.extend_from_slice(ARRAY_END);
    Ok(out)
}

/// Fails unless the bytes that an append overwrites are the end of an array, or bytes that an aborted attempt at this
/// append wrote.
pub(super) fn check_overwritten(
    file: &mut File,
    from: u64,
    rows: &EncodedRows,
) -> Result<(), Fault> {
    if rows.overwritten == 0 {
        return Ok(());
    }
    let mut left = Vec::new();
    let read = file
        .seek(SeekFrom::Start(from - rows.overwritten))
        .and_then(|_| file.take(rows.overwritten).read_to_end(&mut left));
    read.map_err(|error| invalid(format!("cannot read the end of the array: {error}")))?;
    let mut all = left.iter().zip(ARRAY_END).zip(&rows.bytes);
    match all.all(|((left, end), own)| left == end || left == own || *left == 0) {
        true => Ok(()),
        false => Err(not_an_array()),
    }
}

fn not_an_array() -> Fault {
    invalid(
        "the file is not an array that `format: json` wrote: it must end in a line `]`; nothing was written",
    )
}

fn csv(
    rows: &[&Value],
    columns: Option<&[String]>,
    from: u64,
    mut file: Option<&mut File>,
) -> Result<EncodedRows, Fault> {
    let header = match (&mut file, from) {
        (Some(file), 1..) => Some(header(file, from)?),
        _ => None,
    };
    let used = match (columns, &header) {
        (Some(columns), Some(header)) if columns != header.as_slice() => {
            return Err(invalid(format!(
                "the file has the columns {}, and `columns` has {}; nothing was written",
                header.join(", "),
                columns.join(", ")
            )));
        }
        (Some(columns), _) => columns.to_vec(),
        (None, Some(header)) => header.clone(),
        (None, None) => members(rows),
    };
    let mut out = EncodedRows::default();
    let mut text = String::new();
    if !rows.is_empty() && lacks_line_end(file, from)? {
        text.push('\n');
    }
    if header.is_none() && from == 0 && !used.is_empty() {
        if let Some(what) = misspelt_column(&used, rows) {
            return Err(invalid(what));
        }
        push_record(&mut text, used.iter().map(|name| quoted(name)));
    }
    for (at, row) in rows.iter().enumerate() {
        let cells = cells(row, &used, columns.is_some());
        let cells = cells.map_err(|what| invalid(format!("row {} {what}", at + 1)))?;
        push_record(&mut text, cells.into_iter());
        out.ends.push(from + text.len() as u64);
    }
    out.bytes = text.into_bytes();
    Ok(out)
}

/// Finds a column of a new file that no row has, although the rows have a member with almost this name.
fn misspelt_column(columns: &[String], rows: &[&Value]) -> Option<String> {
    let members = members(rows);
    let chosen = |name: &&String| columns.contains(name);
    let others = members.iter().filter(|name| !chosen(name));
    columns
        .iter()
        .filter(|column| !members.contains(column))
        .find_map(|column| Some((column, nearest(column, others.clone().map(String::as_str))?)))
        .map(|(column, member)| {
            format!(
                "no row has a member `{column}`, which `columns` names: did you mean `{member}`? Nothing was written. \
                 If the member may be missing, put the line of the column names into the file first"
            )
        })
}

/// Returns the names of the members of all rows, in the order in which they first appear.
fn members(rows: &[&Value]) -> Vec<String> {
    let mut seen = HashSet::new();
    let objects = rows.iter().filter_map(|row| row.as_object());
    objects
        .flat_map(|row| row.keys())
        .filter(|name| seen.insert((*name).clone()))
        .map(|name| name.to_string())
        .collect()
}

/// Returns the cells of a row. If `chosen` is true, the action names the columns, and a row may have other members. If
/// it is false, each member of the row must be a column.
fn cells(row: &Value, columns: &[String], chosen: bool) -> Result<Vec<String>, String> {
    match row {
        Value::Object(members) => {
            let unknown = members
                .keys()
                .find(|name| !columns.iter().any(|c| **c == ***name));
            if let Some(name) = unknown.filter(|_| !chosen) {
                return Err(format!(
                    "has the member `{name}`, which is not a column of the file ({}): name all columns in `columns`; \
                     nothing was written",
                    columns.join(", ")
                ));
            }
            let cell = |name: &String| members.get(name.as_str()).map(cell).unwrap_or_default();
            Ok(columns.iter().map(cell).collect())
        }
        Value::Array(items) if chosen && items.len() == columns.len() => {
            Ok(items.iter().map(cell).collect())
        }
        Value::Array(items) if chosen => Err(format!(
            "has {} values for {} columns; nothing was written",
            items.len(),
            columns.len()
        )),
        Value::Array(_) => Err("is a list: name its columns in `columns`".to_owned()),
        other => Err(format!("is {}, and CSV needs an object", other.kind())),
    }
}

/// Encodes a value as a cell. Null is an empty cell, and an empty text is `""`.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => quoted(text.as_str()),
        other => quoted(&other.to_json()),
    }
}

fn quoted(text: &str) -> String {
    let outer = text.starts_with(' ') || text.ends_with(' ');
    if text.is_empty() || outer || text.contains(['"', ',', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

fn push_record(text: &mut String, cells: impl Iterator<Item = String>) {
    let start = text.len();
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&cell);
    }
    // Most readers skip an empty line, so a record with one empty cell is written as `""`.
    if text.len() == start {
        text.push_str("\"\"");
    }
    text.push('\n');
}

/// Reads the names of the columns from the first line of a CSV file.
fn header(file: &mut File, from: u64) -> Result<Vec<String>, Fault> {
    let mut bytes = Vec::new();
    let read: io::Result<usize> = file
        .seek(SeekFrom::Start(0))
        .and_then(|_| file.take(from.min(MAX_HEADER)).read_to_end(&mut bytes));
    read.map_err(|error| invalid(format!("cannot read the header: {error}")))?;
    let text = String::from_utf8_lossy(&bytes);
    // Spreadsheets write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let (mut names, mut name, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => name.extend(letters.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => names.push(std::mem::take(&mut name)),
            '\r' if !is_quoted => {}
            '\n' if !is_quoted => {
                names.push(name);
                return Ok(names);
            }
            letter => name.push(letter),
        }
    }
    Err(invalid(
        "the file has no header: its first line does not end; nothing was written",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(json: &str) -> Value {
        Value::from_json(json).unwrap()
    }

    fn text(rows: &[&str], format: &RowFormat, from: u64, file: Option<&mut File>) -> String {
        let rows: Vec<Value> = rows.iter().map(|json| row(json)).collect();
        let rows: Vec<&Value> = rows.iter().collect();
        match encode(&rows, format, from, file) {
            Ok(rows) => String::from_utf8(rows.bytes).unwrap(),
            Err(fault) => fault.message.to_string(),
        }
    }

    #[test]
    fn an_array_continues_before_its_end() {
        let mut whole = String::new();
        for rows in [&[][..], &["1"], &["{}", "[2]"], &[], &["3"]] {
            let from = whole.len() as u64;
            let added = text(rows, &RowFormat::Array, from, None);
            if from > 0 && !rows.is_empty() {
                whole.truncate(whole.len() - 3);
            }
            whole.push_str(&added);
            assert!(Value::from_json(&whole).is_ok(), "{whole}");
        }
        assert_eq!(whole, "[\n1,\n{},\n[2],\n3\n]\n");
    }

    #[test]
    fn cells_are_quoted_and_columns_are_those_of_the_header() {
        let format = RowFormat::Csv(None);
        let first = [r#"{"id":1,"a,b":"x\"y"}"#, r#"{"id":2,"c":null,"d":""}"#];
        let written = text(&first, &format, 0, None);
        assert_eq!(written, "id,\"a,b\",c,d\n1,\"x\"\"y\",,\n2,,,\"\"\n");
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, written.as_bytes()).unwrap();
        let from = written.len() as u64;
        let next = text(&[r#"{"d":[1],"id":3}"#], &format, from, Some(&mut file));
        assert_eq!(next, "3,,,[1]\n");
        let wrong = text(&[r#"{"id":3,"e":1}"#], &format, from, Some(&mut file));
        assert!(wrong.starts_with("row 1 has the member `e`"), "{wrong}");
        let chosen = RowFormat::Csv(Some(vec!["id".to_owned()]));
        assert_eq!(text(&[r#"{"id":3,"e":1}"#], &chosen, 0, None), "id\n3\n");
    }
}
