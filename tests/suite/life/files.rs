//! The files that a workflow names are read only from its own folder.

use std::path::Path;
use windlass_engine::{Engine, LoadError, LoadOptions, load};

/// A workflow whose components are these files.
fn naming(paths: &[&str]) -> String {
    let node = |(index, path): (usize, &&str)| {
        format!("  - {{ id: n{index}, type: component, data: {{ workflowRef: \"{path}\" }} }}\n")
    };
    let nodes: String = paths.iter().enumerate().map(node).collect();
    format!("nodes:\n{nodes}")
}

/// The messages about missing files.
fn missing_files(error: Option<LoadError>) -> Vec<String> {
    let Some(LoadError::Refused { diagnostics, .. }) = error else {
        return Vec::new();
    };
    let about = |code: &str| code == "missing-file";
    let about = diagnostics
        .sorted()
        .into_iter()
        .filter(|one| about(one.code));
    about.map(|one| one.message.clone()).collect()
}

fn refused(folder: &Path, main: &str) -> Vec<String> {
    let path = folder.join("main.yaml");
    std::fs::write(&path, main).unwrap();
    missing_files(load(&path, &LoadOptions::default()).err())
}

#[test]
fn what_lies_outside_of_the_folder_is_never_read() {
    let top = tempfile::tempdir().unwrap();
    let folder = top.path().join("here");
    std::fs::create_dir_all(folder.join("parts")).unwrap();
    let secret = top.path().join("secret.yaml");
    std::fs::write(&secret, naming(&["told-the-secret.yaml"])).unwrap();
    std::os::unix::fs::symlink(&secret, folder.join("link.yaml")).unwrap();
    std::os::unix::fs::symlink(top.path(), folder.join("out")).unwrap();
    std::fs::create_dir(folder.join("folder.yaml")).unwrap();

    let absolute = secret.display().to_string();
    let below = "is not below the folder of the file that names it";
    for (path, why) in [
        (absolute.as_str(), below),
        ("../secret.yaml", below),
        ("parts/../../secret.yaml", below),
        ("parts/../link.yaml", below),
        ("", below),
        ("link.yaml", "leads out of the folder"),
        ("out/secret.yaml", "leads out of the folder"),
        ("folder.yaml", "it is not a regular file"),
        ("nowhere.yaml", "No such file"),
    ] {
        let messages = refused(&folder, &naming(&[path]));
        assert_eq!(messages.len(), 1, "{path}: {messages:?}");
        assert!(messages[0].contains(why), "{path}: {messages:?}");
    }
}

#[test]
fn files_name_further_ones_from_their_own_folder() {
    let top = tempfile::tempdir().unwrap();
    let folder = top.path();
    std::fs::create_dir_all(folder.join("parts/deep")).unwrap();
    std::fs::write(folder.join("parts/a.yaml"), naming(&["deep/b.yaml"])).unwrap();
    std::fs::write(folder.join("parts/deep/b.yaml"), naming(&["c.yaml"])).unwrap();
    let messages = refused(folder, &naming(&["parts/a.yaml"]));
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(
        messages[0].starts_with("`c.yaml` cannot be read"),
        "{messages:?}"
    );
    std::fs::write(folder.join("parts/deep/c.yaml"), naming(&[])).unwrap();
    assert_eq!(refused(folder, &naming(&["parts/a.yaml"])), [""; 0]);
}

#[test]
fn their_number_and_size_are_bounded() {
    let top = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..65).map(|index| format!("n{index}.yaml")).collect();
    for name in &names {
        std::fs::write(top.path().join(name), naming(&[])).unwrap();
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(refused(top.path(), &naming(&names[..64])), [""; 0]);
    let messages = refused(top.path(), &naming(&names));
    assert_eq!(messages, ["`n64.yaml` is one file too many"]);

    let large = "#".repeat(9 << 20);
    std::fs::write(top.path().join("n0.yaml"), &large).unwrap();
    assert_eq!(refused(top.path(), &naming(&names[..1])), [""; 0]);
    std::fs::write(top.path().join("n1.yaml"), &large).unwrap();
    let messages = refused(top.path(), &naming(&names[..3]));
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(
        messages[0].contains("`n1.yaml` cannot be read"),
        "{messages:?}"
    );
    assert!(messages[0].contains("have more than"), "{messages:?}");
}

#[tokio::test]
async fn text_has_no_folder() {
    let engine = Engine::builder().in_memory().unwrap();
    let messages = missing_files(engine.load_text("main.yaml", &naming(&["a.yaml"])).err());
    assert_eq!(messages.len(), 1);
    assert!(
        messages[0].contains("came as text, without a folder"),
        "{messages:?}"
    );
    engine.stop().await;
}
