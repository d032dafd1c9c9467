//! The files of a workflow.

use windlass_source::source::{Bundle, SourceFile};

fn bundle() -> Bundle {
    let mut bundle = Bundle::single("some/where/main.yaml", "");
    bundle.files.push(SourceFile {
        path: "parts/inner.yaml".into(),
        text: String::new(),
    });
    bundle
}

#[test]
fn files_are_found_from_the_workflows_folder() {
    let bundle = bundle();
    assert_eq!(bundle.named("parts/inner.yaml"), Some(1));
    assert_eq!(bundle.named("main.yaml"), Some(0));
    assert_eq!(bundle.named("inner.yaml"), None);
    assert_eq!(bundle.named("some/where/main.yaml"), None);
    assert_eq!(Bundle::single("-", "").named("-"), Some(0));
}

#[test]
fn what_a_file_names_is_in_its_folder() {
    let bundle = bundle();
    let resolve = |file, path| bundle.resolve_sibling(file, path);
    assert_eq!(resolve(0, "a.yaml").as_deref(), Some("a.yaml"));
    assert_eq!(resolve(0, "./b/./a.yaml").as_deref(), Some("b/a.yaml"));
    assert_eq!(resolve(1, "a.yaml").as_deref(), Some("parts/a.yaml"));
    assert_eq!(resolve(1, "x/a.yaml").as_deref(), Some("parts/x/a.yaml"));
    for outside in [
        "/a",
        "../a",
        "b/../../a",
        "b/../a",
        "",
        ".",
        "b/",
        "..",
        "a\0",
    ] {
        assert_eq!(resolve(0, outside), None, "{outside:?}");
    }
    assert_eq!(resolve(1, "../main.yaml"), None);
    assert_eq!(resolve(9, "a"), None);
}
