//! The diagnostics of invalid files. Each `tests/diagnostics/NAME.yaml` (or `.json`) is read, and its diagnostics must
//! be those in `NAME.txt`. With `UPDATE_EXPECTED=1` the texts are written instead.

use std::fmt::Write as _;
use std::path::Path;
use windlass_formats::Caps;
use windlass_source::source::Bundle;

/// Every diagnostic shows its place: `--> file:line:column`, the line, a caret, and a hint.
fn assert_complete(name: &str, text: &str) {
    let places = text.lines().filter(|line| line.contains("--> ")).count();
    let carets = text
        .lines()
        .filter(|line| line.contains(" | ") && line.contains('^'))
        .count();
    let hints = text
        .lines()
        .filter(|line| line.contains("= hint: "))
        .count();
    assert!(places > 0, "{name}: no place\n{text}");
    assert_eq!(places, carets, "{name}: a place without a caret\n{text}");
    assert_eq!(places, hints, "{name}: a place without a hint\n{text}");
    for line in text.lines().filter(|line| line.contains("--> ")) {
        let place = line.split("--> ").nth(1).unwrap();
        let parts: Vec<&str> = place.rsplitn(3, ':').collect();
        assert!(
            parts.iter().take(2).all(|part| part.parse::<u32>().is_ok()),
            "{name}: {line}"
        );
    }
}

#[test]
fn bad_files_are_explained() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let update = std::env::var_os("UPDATE_EXPECTED").is_some();
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending != "txt"))
        .collect();
    files.sort();
    assert!(files.len() >= 26, "only {} bad files", files.len());
    let mut wrong = String::new();
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let bundle = Bundle::single(&name, std::fs::read_to_string(&path).unwrap());
        let (workflow, diagnostics) = windlass_formats::read(&bundle, None, &Caps::default());
        let text = diagnostics.render(&bundle, false);
        assert_complete(&name, &text);
        assert_eq!(
            workflow.is_none(),
            text.contains("error["),
            "{name}\n{text}"
        );
        let expected = path.with_extension("txt");
        if update {
            std::fs::write(&expected, &*text).unwrap();
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != *text {
            let _ = writeln!(wrong, "{name} now says:\n{text}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
