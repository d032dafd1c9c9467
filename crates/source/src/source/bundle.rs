//! The files of one program, and how they name each other. It never touches the file system.

use std::path::{Component, Path};

/// What some editors put before a text.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

/// One file's name, as the user gave it, and text.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct SourceFile {
    /// The path as shown in diagnostics; `-` for standard input. Of a file that another one names,
    /// the path from the workflow's folder.
    pub path: String,
    /// The text as it was read.
    pub text: String,
}

impl SourceFile {
    /// The text without a byte order mark: what lines and columns count in.
    #[must_use]
    pub fn content(&self) -> &str {
        self.text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.text)
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
    /// A workflow that refers to no further file.
    pub fn single(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            files: vec![SourceFile {
                path: path.into(),
                text: text.into(),
            }],
        }
    }

    /// The file of this number, from 0.
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

    /// The file that one of its files names, see [`Bundle::resolve_sibling`].
    #[must_use]
    pub fn named_by(&self, file: u16, path: &str) -> Option<u16> {
        self.named(&self.resolve_sibling(file, path)?)
    }

    /// The path from the workflow's folder of what one of its files names: next to that file or
    /// in a folder next to it. None for anything that is or may lead outside: an absolute path, `..`.
    #[must_use]
    pub fn resolve_sibling(&self, file: u16, path: &str) -> Option<String> {
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
