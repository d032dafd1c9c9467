//! Plain words: no sentence of the documents is long, help and messages avoid idioms, and the code refers only to pages
//! that exist.

use std::path::{Path, PathBuf};

const LONGEST: usize = 35;

/// Words and phrases that are hard to understand; there is a technical noun or verb for each.
const AVOIDED: [&str; 30] = [
    "told",
    "tell",
    "tells",
    "telling",
    "stands",
    "whoever",
    "anew",
    "beside",
    "so many",
    "as many as",
    "there is none",
    "go on",
    "goes on",
    "lets",
    "look at",
    "looks at",
    "a look",
    "by itself",
    "what is kept",
    "nobody",
    "somebody",
    "comes",
    "takes",
    "gives",
    "leaves with",
    "let in",
    "of then",
    "of that moment",
    "bear",
    "may stand",
];

/// Words that only the documents avoid; `*` is any word.
const AVOIDED_IN_DOCUMENTS: [&str; 11] = [
    "who",
    "is no *",
    "are no *",
    "going on",
    "went on",
    "bears",
    "earlier that day",
    "under way",
    "the like",
    "in its turn",
    "stands for",
];

/// Words that only help and messages avoid.
const AVOIDED_IN_MESSAGES: [&str; 4] = ["is no", "by themselves", "is kept", "are kept"];

/// Words that names and comments of the code avoid.
const AVOIDED_IN_CODE: [&str; 14] = [
    "asked", "said", "told", "tell", "tells", "telling", "untold", "stands", "whoever", "anew",
    "beside", "lets", "nobody", "somebody",
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    // A symbolic link includes files of another folder in a crate's package.
    let paths = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.is_symlink());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let below = folders.iter().flat_map(|folder| self::files(folder));
    files.into_iter().chain(below).collect()
}

/// The sentences of a page outside its code. A sentence ends at an empty line, at the end of a table's cell or a list's
/// item, and at a full stop or similar before a capital letter or Markdown.
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

/// The words of a page outside its code and the targets of its links, in lower case, with their lines. A punctuation
/// mark that ends a phrase is an empty word.
fn plain_words(page: &str) -> Vec<(usize, String)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    let (mut is_block, mut is_span, mut is_target) = (false, false, false);
    for (number, line) in page.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
            continue;
        }
        if is_block {
            continue;
        }
        if line.trim().is_empty() {
            (is_span, is_target) = (false, false);
        }
        let mut is_word = false;
        let mut last = ' ';
        for sign in line.chars() {
            match sign {
                '`' => is_span = !is_span,
                '(' if last == ']' => is_target = true,
                ')' if is_target => is_target = false,
                _ => {}
            }
            let is_letter = sign.is_alphanumeric() && !is_span && !is_target;
            match (is_letter, words.last_mut()) {
                (true, Some((_, word))) if is_word => word.extend(sign.to_lowercase()),
                (true, _) => words.push((number, sign.to_lowercase().collect())),
                (false, _) if ".,;:!?()|`".contains(sign) => words.push((number, String::new())),
                (false, _) => {}
            }
            is_word = is_letter;
            last = sign;
        }
    }
    words
}

/// The forbidden words of a page, with their lines.
fn forbidden(page: &str) -> Vec<(usize, String)> {
    let words = plain_words(page);
    let mut hits = Vec::new();
    for at in 0..words.len() {
        for phrase in AVOIDED.iter().chain(&AVOIDED_IN_DOCUMENTS) {
            let wanted: Vec<&str> = phrase.split(' ').collect();
            let Some(found) = words.get(at..at + wanted.len()) else {
                continue;
            };
            let is_same = |(wanted, (_, word)): (&&str, &(usize, String))| match *wanted {
                "*" => !matches!(&**word, "" | "longer" | "more"),
                wanted => wanted == word,
            };
            if wanted.iter().zip(found).all(is_same) {
                let text: Vec<&str> = found.iter().map(|(_, word)| &**word).collect();
                hits.push((found[0].0, text.join(" ")));
            }
        }
    }
    hits
}

#[test]
fn documents_have_no_forbidden_words() {
    assert_eq!(
        forbidden("It is no\nlist. `who` [x](who.md)\n```\nwho\n```\nWho"),
        [(1, "is no list".to_owned()), (6, "who".to_owned())]
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut hits = String::new();
    let pages = files(&root.join("docs")).into_iter();
    for path in pages.chain([root.join("README.md")]) {
        if path.extension().is_none_or(|end| end != "md") {
            continue;
        }
        let page = std::fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(root).unwrap().display();
        for (line, words) in forbidden(&page) {
            hits += &format!("{name}:{line}: {words}\n");
        }
    }
    assert!(hits.is_empty(), "forbidden words:\n{hits}");
}

/// The descriptions in a part of an OpenAPI document, each with its place.
fn descriptions(part: &serde_json::Value, place: &str, found: &mut Vec<(String, String)>) {
    let members: Vec<(String, &serde_json::Value)> = match part {
        serde_json::Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), value))
            .collect(),
        serde_json::Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(at, item)| (at.to_string(), item))
            .collect(),
        _ => Vec::new(),
    };
    for (key, value) in members {
        let place = format!("{place}/{key}");
        match value.as_str() {
            Some(text) if ["description", "summary"].contains(&&*key) => {
                found.push((place, text.to_owned()));
            }
            _ => descriptions(value, &place, found),
        }
    }
}

#[test]
fn the_api_description_has_no_forbidden_words() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json");
    let document = std::fs::read_to_string(path).unwrap();
    let document = serde_json::from_str(&document).unwrap();
    let mut found = Vec::new();
    descriptions(&document, "", &mut found);
    assert!(found.len() > 500, "{} descriptions", found.len());
    let mut hits = String::new();
    for (place, text) in found {
        for (_, words) in forbidden(&text) {
            hits += &format!("{place}: {words}: {text}\n");
        }
    }
    assert!(hits.is_empty(), "forbidden words:\n{hits}");
}

/// The words of code, in lower case; names are split at `_` and capitals.
fn code_words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for sign in text.chars() {
        if !sign.is_alphabetic() || (was_lower && sign.is_uppercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| sign.is_alphabetic()) {
            word.extend(sign.to_lowercase());
        }
        was_lower = sign.is_lowercase();
    }
    words
}

#[test]
fn the_code_has_no_forbidden_words() {
    assert!(code_words("is_untold MAX_TOLD CellTold2").contains(&"told".to_owned()));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut hits = String::new();
    let code = ["src", "crates", "ui/src"].map(|folder| files(&root.join(folder)));
    for path in code.into_iter().flatten() {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        let is_code = [".rs", ".ts", ".svelte"]
            .iter()
            .any(|end| name.ends_with(end));
        if !is_code || name.contains("/tests") || name.ends_with("/generated.ts") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in without_tests(&text).lines().enumerate() {
            let mut words = code_words(line).into_iter();
            if words.any(|word| AVOIDED_IN_CODE.contains(&&*word)) {
                hits += &format!("{name}:{}: {}\n", number + 1, line.trim());
            }
        }
    }
    assert!(hits.is_empty(), "forbidden words:\n{hits}");
}

#[test]
fn pages_have_at_most_400_lines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for path in files(&root.join("docs")) {
        if path.extension().is_some_and(|end| end == "md") {
            let lines = std::fs::read_to_string(&path).unwrap().lines().count();
            assert!(lines <= 400, "{}: {lines} lines", path.display());
        }
    }
}

#[test]
fn the_code_names_only_pages_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut missing = String::new();
    let code = ["src", "crates"].map(|folder| files(&root.join(folder)));
    for path in code.into_iter().flatten() {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        for word in text.split(|sign: char| !sign.is_alphanumeric() && !"/._-".contains(sign)) {
            let page = word.trim_end_matches('.').trim_start_matches('/');
            if !page.ends_with(".md") || page == ".md" {
                continue;
            }
            // The texts of the reference's tables are in the vocabulary, with links between the pages.
            let folders = [root.to_owned(), root.join("docs/reference")];
            if !folders.iter().any(|folder| folder.join(page).is_file()) {
                missing += &format!("{}: {page}\n", path.display());
            }
        }
    }
    assert!(missing.is_empty(), "no such page:\n{missing}");
}

/// The anchors of a page's headings, as GitHub generates them.
fn anchors(page: &str) -> Vec<String> {
    let mut code = false;
    let headings = page.lines().filter(|line| {
        code ^= line.trim_start().starts_with("```");
        !code && line.starts_with('#')
    });
    let anchor = |heading: &str| -> String {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let letters = text
            .chars()
            .filter(|sign| sign.is_alphanumeric() || " _-".contains(*sign));
        letters
            .map(|sign| if sign == ' ' { '-' } else { sign })
            .collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_of_the_documents_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut dead = String::new();
    let pages = files(&root.join("docs")).into_iter();
    let others = [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
        "ui/README.md",
    ];
    for path in pages.chain(others.map(|name| root.join(name))) {
        if path.extension().is_none_or(|end| end != "md") {
            continue;
        }
        let page = std::fs::read_to_string(&path).unwrap();
        let targets = page
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://") && !target.contains(' ')) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let to = match file {
                "" => path.clone(),
                _ => path.parent().unwrap().join(file),
            };
            let there = match std::fs::read_to_string(&to) {
                _ if anchor.is_empty() => to.exists(),
                Ok(text) => anchors(&text).iter().any(|one| one == anchor),
                Err(_) => false,
            };
            if !there {
                dead += &format!("{}: {target}\n", path.display());
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{dead}");
}

#[test]
fn every_page_is_in_the_manual() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let summary = std::fs::read_to_string(root.join("docs/SUMMARY.md")).unwrap();
    let embedded = std::fs::read_to_string(root.join("crates/server/src/http/ui.rs")).unwrap();
    for path in files(&root.join("docs")) {
        let name = path
            .strip_prefix(root.join("docs"))
            .unwrap()
            .to_str()
            .unwrap();
        let Some(page) = name.strip_suffix(".md").filter(|page| *page != "SUMMARY") else {
            continue;
        };
        assert!(
            summary.contains(&format!("]({name})")),
            "SUMMARY.md lacks {name}"
        );
        assert!(
            embedded.contains(&format!("\"{page}\"")),
            "the console lacks {name}"
        );
    }
}

#[test]
fn every_option_is_on_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let man = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["man", "--dir"])
        .arg(folder.path())
        .status();
    assert!(man.unwrap().success());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = files(&root.join("docs")).into_iter();
    let pages = pages.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let pages: String = pages
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let mut missing = std::collections::BTreeMap::new();
    for path in files(folder.path()) {
        let command = path
            .file_stem()
            .unwrap()
            .to_str()
            .unwrap()
            .replace('-', " ");
        let text = std::fs::read_to_string(&path).unwrap().replace("\\-", "-");
        for rest in text.split("--").skip(1) {
            let ends = |sign: char| !sign.is_ascii_lowercase() && sign != '-';
            let name = rest
                .split(ends)
                .next()
                .unwrap_or_default()
                .trim_end_matches('-');
            let flag = format!("--{name}");
            let parts = pages.split(&flag).skip(1);
            let mentions = parts.filter(|rest| rest.starts_with(ends)).count();
            if !name.is_empty() && mentions == 0 && !matches!(name, "help" | "version") {
                missing.insert(name.to_owned(), command.clone());
            }
        }
    }
    assert!(
        missing.is_empty(),
        "options on no page, and whose: {missing:?}"
    );
}

fn avoided(text: &str) -> Vec<&'static str> {
    let words = text.split(|sign: char| !sign.is_alphanumeric());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let text = format!(" {} ", words.join(" "));
    let found = AVOIDED.iter().chain(&AVOIDED_IN_MESSAGES).copied();
    found
        .filter(|phrase| text.contains(&format!(" {phrase} ")))
        .collect()
}

#[test]
fn help_has_plain_words() {
    let folder = tempfile::tempdir().unwrap();
    let windlass = |words: &[&str]| {
        let program = env!("CARGO_BIN_EXE_windlass");
        let output = std::process::Command::new(program).args(words).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    windlass(&["man", "--dir", folder.path().to_str().unwrap()]);
    let mut hits = String::new();
    let mut commands = 0;
    for path in files(folder.path()) {
        let page = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut words: Vec<&str> = name.split('-').skip(1).collect();
        words.push("--help");
        for (what, text) in [("help", windlass(&words)), ("man", page)] {
            for phrase in avoided(&text) {
                hits += &format!("{what} of {name}: {phrase}\n");
            }
        }
        commands += 1;
    }
    assert!(commands > 40, "{commands}");
    assert!(hits.is_empty(), "{hits}");
}

/// A source without the tests at its end. A line such as `mod tests;` names tests that are elsewhere.
fn without_tests(source: &str) -> &str {
    let mut modules = source.match_indices("#[cfg(test)]\nmod ");
    let inline = modules.find(|(at, start)| {
        let line = source[at + start.len()..].lines().next();
        line.is_some_and(|line| line.ends_with('{'))
    });
    inline.map_or(source, |(at, _)| &source[..at])
}

/// The string literals of a source outside its tests, without placeholders.
fn literals(source: &str) -> Vec<(usize, String)> {
    let source = without_tests(source);
    let line = |rest: &str| source[..source.len() - rest.len()].matches('\n').count() + 1;
    let mut found = Vec::new();
    let mut rest = source;
    let mut before = ' ';
    while let Some(next) = rest.chars().next() {
        let hashes = match next {
            'r' => rest[1..].chars().take_while(|sign| *sign == '#').count(),
            _ => 0,
        };
        let raw = next == 'r' && !before.is_alphanumeric() && rest[1 + hashes..].starts_with('"');
        if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if raw {
            let inner = &rest[hashes + 2..];
            let end = inner.find(&format!("\"{}", "#".repeat(hashes))).unwrap();
            found.push((line(rest), inner[..end].to_owned()));
            rest = &inner[end + 1 + hashes..];
        } else if next == '"' {
            let inner = &rest[1..];
            let mut escaped = false;
            let end = inner.find(|sign| {
                let ends = sign == '"' && !escaped;
                escaped = sign == '\\' && !escaped;
                ends
            });
            let end = end.unwrap();
            found.push((line(rest), inner[..end].to_owned()));
            rest = &inner[end + 1..];
        } else if next == '\'' && rest[1..].starts_with('\\') {
            // A character such as '\'' or '\u{7f}'.
            rest = &rest[3..];
            rest = &rest[rest.find('\'').map_or(0, |end| end + 1)..];
        } else if next == '\'' && rest.chars().nth(2) == Some('\'') {
            rest = &rest[rest.char_indices().nth(3).map_or(rest.len(), |(at, _)| at)..];
        } else {
            rest = &rest[next.len_utf8()..];
        }
        before = next;
    }
    let shown = found.into_iter().map(|(line, text)| {
        let mut shown = String::new();
        let mut depth = 0;
        for sign in text.replace("\\\n", "\n").chars() {
            depth += i32::from(sign == '{') - i32::from(sign == '}');
            if depth <= 0 && sign != '}' {
                shown.push(sign);
            }
        }
        (line, shown)
    });
    shown.collect()
}

#[test]
fn messages_have_plain_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = std::fs::read_dir(root.join("crates")).unwrap();
    let crates = crates.map(|one| one.unwrap().path().join("src"));
    let mut hits = String::new();
    for path in crates
        .chain([root.join("src")])
        .flat_map(|folder| files(&folder))
    {
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.ends_with(".rs") || name.contains("tests") {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        for (line, text) in literals(&source) {
            // A single word is a key or a name.
            if !text.trim().contains(' ') {
                continue;
            }
            for phrase in avoided(&text) {
                let place = path.strip_prefix(root).unwrap().display();
                hits += &format!("{place}:{line}: `{phrase}` in {text}\n");
            }
        }
    }
    assert!(hits.is_empty(), "messages with words to avoid:\n{hits}");
}

#[test]
fn words_to_avoid_are_found() {
    assert_eq!(avoided("`x` is no duration"), ["is no"]);
    assert_eq!(
        avoided("there is nothing; it is not, standstill"),
        Vec::<&str>::new()
    );
    let source = "let a = '\"'; // \"told\"\nlet b = \"it goes \\\n on, {told} \\\" here\";";
    let found = literals(source);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].0, avoided(&found[0].1)), (2, vec!["goes on"]));
    assert_eq!(literals("r#\"a \"b\"\"# 'x' \"y\"").len(), 2);
}
