//! The files of one program, and how they name each other. It never touches the file system.

use std::path::{Component, Path};

/// One file's name, as the user gave it, and text.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct SourceFile {
    /// The path as shown in diagnostics; `-` for standard input. Of a file that another one names,
    /// the path from the workflow's folder.
    pub path: String,
    /// Its whole text.
    pub text: String,
}

impl SourceFile {
    /// The text without a byte order mark: what lines and columns count in.
    #[must_use]
    pub fn content(&self) -> &str {
        self.text.strip_prefix('\u{feff}').unwrap_or(&self.text)
    }
}

/// Everything a program is compiled from: the workflow and the files that it refers to.
///
/// The whole bundle is stored with a run, so that the run is pinned to what it started with.
#[derive(Clone, Debug, PartialEq, Eq, Default, bincode::Encode, bincode::Decode)]
pub struct Bundle {
    /// The workflow first. Then, of a Logic Apps definition, the values of its parameters; of
    /// other formats, the files that the workflow names, see [`Bundle::named`].
    pub files: Vec<SourceFile>,
}

impl Bundle {
    /// A bundle of one file.
    pub fn single(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            files: vec![SourceFile {
                path: path.into(),
                text: text.into(),
            }],
        }
    }

    /// The file a span points into.
    #[must_use]
    pub fn file(&self, file: u16) -> Option<&SourceFile> {
        self.files.get(usize::from(file))
    }

    /// The file of this path from the workflow's folder: the workflow itself, or one that it
    /// names.
    #[must_use]
    pub fn named(&self, path: &str) -> Option<u16> {
        let is = |(index, file): (usize, &SourceFile)| match index {
            0 => Path::new(&file.path).file_name() == Some(path.as_ref()),
            _ => file.path == path,
        };
        let mut files = self.files.iter().enumerate();
        files
            .position(is)
            .and_then(|index| u16::try_from(index).ok())
    }

    /// The path from the workflow's folder of what one of its files names: beside that file or
    /// in a folder beside it. None for anything that is or may lead outside: an absolute path, `..`.
    #[must_use]
    pub fn beside(&self, file: u16, path: &str) -> Option<String> {
        let around = match file {
            0 => "",
            _ => Path::new(&self.file(file)?.path).parent()?.to_str()?,
        };
        let mut parts: Vec<&str> = around.split('/').filter(|part| !part.is_empty()).collect();
        for part in Path::new(path).components() {
            match part {
                Component::CurDir => {}
                Component::Normal(name) => parts.push(name.to_str()?),
                Component::Prefix(_) | Component::RootDir | Component::ParentDir => return None,
            }
        }
        let named = !path.is_empty() && !path.ends_with(['/', '.']) && !path.contains('\0');
        named.then(|| parts.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Bundle, SourceFile};

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
    fn what_a_file_names_lies_beside_it() {
        let bundle = bundle();
        let beside = |file, path| bundle.beside(file, path);
        assert_eq!(beside(0, "a.yaml").as_deref(), Some("a.yaml"));
        assert_eq!(beside(0, "./b/./a.yaml").as_deref(), Some("b/a.yaml"));
        assert_eq!(beside(1, "a.yaml").as_deref(), Some("parts/a.yaml"));
        assert_eq!(beside(1, "x/a.yaml").as_deref(), Some("parts/x/a.yaml"));
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
            assert_eq!(beside(0, outside), None, "{outside:?}");
        }
        assert_eq!(beside(1, "../main.yaml"), None);
        assert_eq!(beside(9, "a"), None);
    }
}
