//! What a workflow may do to the machine and the network around it, and how that is stored. It asks
//! nobody: who refuses is the executor or the loader.

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

/// What a workflow may do to the machine that it runs on and to the network around that. It is
/// stored with the program, so that a run keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Run commands: `shell`, and handlers of its own with `command`.
    pub shell: bool,
    /// Run scripts in languages that are not confined: Python, Prolog.
    pub scripts: bool,
    /// Write files of the machine.
    pub files: bool,
    /// Reach addresses that are not on the public internet.
    pub private_network: bool,
    /// Name any secret; without this only those that the operator lets guests name.
    pub secrets: bool,
}

/// What is in the last byte of a stored policy beside `private_network`.
const SECRETS_DENIED: u8 = 2;

/// By hand: a byte each, as before there was `secrets`, which is in the last one.
impl Encode for Policy {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        let [shell, scripts, files, last] = self.bytes();
        [shell, scripts, files, last].encode(encoder)
    }
}

impl<Context> Decode<Context> for Policy {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let [shell, scripts, files, last] = <[u8; 4]>::decode(decoder)?;
        if shell.max(scripts).max(files) > 1 || last > 1 + SECRETS_DENIED {
            return Err(DecodeError::Other("a policy that is none"));
        }
        Ok(Self {
            shell: shell == 1,
            scripts: scripts == 1,
            files: files == 1,
            private_network: last & 1 == 1,
            secrets: last & SECRETS_DENIED == 0,
        })
    }
}
bincode::impl_borrow_decode!(Policy);

impl Policy {
    /// For workflows of the operator.
    pub const TRUSTED: Self = Self {
        shell: true,
        scripts: true,
        files: true,
        private_network: true,
        secrets: true,
    };

    /// For workflows from elsewhere.
    pub const GUEST: Self = Self {
        shell: false,
        scripts: false,
        files: false,
        private_network: false,
        secrets: false,
    };

    /// What it says in four bytes.
    #[must_use]
    pub fn bytes(self) -> [u8; 4] {
        let denied = if self.secrets { 0 } else { SECRETS_DENIED };
        [
            u8::from(self.shell),
            u8::from(self.scripts),
            u8::from(self.files),
            u8::from(self.private_network) | denied,
        ]
    }

    /// Which permission an executor needs and does not have, as the flag that gives it.
    #[must_use]
    pub fn denies(self, executor: &str) -> Option<&'static str> {
        match executor {
            "shell" if !self.shell => Some("--allow-shell"),
            // Its rules are Prolog.
            "python" | "prolog" | "validate.extraction" if !self.scripts => Some("--allow-scripts"),
            "appendFile" if !self.files => Some("--allow-files"),
            _ => None,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::TRUSTED
    }
}
