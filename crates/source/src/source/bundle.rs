//! The files of one program, and how they refer to each other. Nothing here touches the file system.

use std::borrow::Cow;
use std::path::{Component, Path};

/// The byte order mark, which some editors put before a text.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

/// One file: its name, as the user passed it, and its text.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct SourceFile {
    /// The path that diagnostics show; `-` for standard input. If another file of the bundle names this file, this is
    /// its path from the workflow's folder.
    pub path: String,
    /// The text as it was read.
    pub text: String,
}

impl SourceFile {
    /// Returns the text without a byte order mark. Lines and columns refer to this text.
    #[must_use]
    pub fn content(&self) -> &str {
        self.text
            .strip_prefix(BYTE_ORDER_MARK)
            .unwrap_or(&self.text)
    }
}

/// All files from which a program is compiled: the workflow, and the files that it refers to.
///
/// The whole bundle is stored with a run, so that the run is pinned to the files that it started with.
#[derive(Clone, Debug, PartialEq, Eq, Default, bincode::Encode, bincode::Decode)]
pub struct Bundle {
    /// The first file is the workflow. For a Logic Apps definition, the next one has the values of its parameters. For
    /// other formats, the files that the workflow names follow, see [`Bundle::named`].
    pub files: Vec<SourceFile>,
}

impl Bundle {
    /// Creates a bundle of a workflow that refers to no other file.
    pub fn single(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            files: vec![SourceFile {
                path: path.into(),
                text: text.into(),
            }],
        }
    }

    /// Returns the file with this index.
    #[must_use]
    pub fn file(&self, file: u16) -> Option<&SourceFile> {
        self.files.get(usize::from(file))
    }

    /// Returns the path of a file for messages. The parameters of a Standard app are next to the workflow's folder.
    #[must_use]
    pub fn shown_path(&self, file: u16) -> Option<Cow<'_, str>> {
        let path = &*self.file(file)?.path;
        let workflow = self.file(0)?;
        let folder = Path::new(&workflow.path).parent();
        let folder = folder.filter(|folder| folder.file_name().is_some());
        Some(
            match (path.strip_prefix("../"), folder.and_then(Path::parent)) {
                (Some(name @ "parameters.json"), Some(app)) => {
                    Cow::Owned(app.join(name).display().to_string())
                }
                _ => Cow::Borrowed(path),
            },
        )
    }

    /// Finds a file by its path from the workflow's folder. This is the workflow itself, or a file that is named in the
    /// bundle.
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

    /// Finds the file that a file of the bundle names, see [`Bundle::resolve_sibling`].
    #[must_use]
    pub fn named_by(&self, file: u16, path: &str) -> Option<u16> {
        self.named(&self.resolve_sibling(file, path)?)
    }

    /// Converts a path that one of the files contains to a path from the workflow's folder. The path is relative to the
    /// folder of the file that contains it. Returns `None` for an absolute path and for a path with `..`, because these
    /// may lead outside of the folder.
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
