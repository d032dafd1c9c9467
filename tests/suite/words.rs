//! Plain words: no sentence of the documents is long, and the code names only pages that exist.

use std::path::{Path, PathBuf};

const LONGEST: usize = 35;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let below = folders.iter().flat_map(|folder| self::files(folder));
    files.into_iter().chain(below).collect()
}

/// The sentences of a page outside of its code: an empty line, a cell of a table, an item of a list
/// ends one, and so does a full stop or the like before a capital or a sign of Markdown.
fn sentences(page: &str) -> Vec<Vec<&str>> {
    let mut sentences = vec![Vec::new()];
    let mut last = "|";
    let mut code = false;
    for line in page.lines() {
        code ^= line.trim_start().starts_with("```");
        let empty = line.trim().is_empty().then_some("|");
        let words = line.split_whitespace().filter(|_| !code).chain(empty);
        for (at, word) in words.enumerate() {
            let number = word.strip_suffix('.').map(str::parse::<u8>);
            let item = word == "-" || word.starts_with('#') || matches!(number, Some(Ok(_)));
            let ended = last.ends_with(['.', '!', '?', ':', ';'])
                && word.starts_with(|sign: char| sign.is_uppercase() || "`*(".contains(sign));
            if item && at == 0 || ended || word == "|" {
                sentences.push(Vec::new());
            }
            if let Some(sentence) = sentences.last_mut() {
                sentence.push(word);
            }
            last = word;
        }
    }
    sentences
}

#[test]
fn sentences_of_the_documents_are_short() {
    let mut long = String::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = files(&root.join("docs")).into_iter();
    for path in pages.chain([root.join("README.md")]) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.ends_with(".md") {
            continue;
        }
        let page = std::fs::read_to_string(&path).unwrap();
        let mut sentences = sentences(&page);
        sentences.retain(|words| words.len() > LONGEST);
        for words in sentences {
            long += &format!("{name}, {} words: {}\n", words.len(), words.join(" "));
        }
    }
    assert!(long.is_empty(), "more than {LONGEST} words:\n{long}");
}

#[test]
fn the_code_names_only_pages_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut missing = String::new();
    for path in files(&root.join("src")) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        for word in text.split(|sign: char| !sign.is_alphanumeric() && !"/._-".contains(sign)) {
            let page = word.trim_end_matches('.').trim_start_matches('/');
            if page.ends_with(".md") && !root.join(page).is_file() {
                missing += &format!("{}: {page}\n", path.display());
            }
        }
    }
    assert!(missing.is_empty(), "no such page:\n{missing}");
}
