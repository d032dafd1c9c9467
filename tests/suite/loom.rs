//! Loom files as they are meant to be written: the seed's examples as bare actions, and the
//! same content in YAML and JSON.

use windlass::dialect::{self, Caps};
use windlass::hir::Workflow;
use windlass::source::Bundle;

fn read(path: &str, text: &str) -> Workflow {
    let bundle = Bundle::single(path, text);
    let (workflow, diagnostics) = dialect::read(&bundle, None, &Caps::default());
    workflow.unwrap_or_else(|| panic!("{}", diagnostics.render(&bundle, false)))
}

/// The tree without its places.
fn shape(workflow: &Workflow) -> String {
    let text = format!("{workflow:?}");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find("Span {") {
        out.push_str(&rest[..start]);
        let end = rest[start..].find('}').unwrap();
        rest = &rest[start + end + 1..];
    }
    out.push_str(rest);
    out
}

#[test]
fn the_examples_of_the_seed_are_workflows() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seed");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let json = read(path.to_str().unwrap(), &text);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let yaml = serde_yaml::to_string(&value).unwrap();
        let name = path.with_extension("yaml");
        let yaml = read(name.to_str().unwrap(), &yaml);
        assert_eq!(shape(&json), shape(&yaml), "{}", path.display());
        count += 1;
    }
    assert!(count >= 10, "only {count} examples");
}

#[test]
fn the_examples_have_nothing_to_complain_about() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let bundle = Bundle::single(path.to_str().unwrap(), text);
        let (workflow, diagnostics) = dialect::read(&bundle, None, &Caps::default());
        assert!(
            workflow.is_some() && diagnostics.is_empty(),
            "{}",
            diagnostics.render(&bundle, false)
        );
        count += 1;
    }
    assert!(count >= 6, "only {count} examples");
}
