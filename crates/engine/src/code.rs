//! The kinds of errors. A kind has a word that programs match on, an HTTP status, an exit code of a command, and a
//! title. Only this table combines them.

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $code:ident = ($word:literal, $status:literal, $exit:literal, $title:literal);)+) => {
        /// The kind of an error. It is stable, whatever the message says.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $(#[doc = $title] $(#[doc = $doc])* $code,)+
        }

        impl ErrorCode {
            const ALL: &[Self] = &[$(Self::$code),+];

            const fn row(self) -> (&'static str, u16, u8, &'static str) {
                match self {
                    $(Self::$code => ($word, $status, $exit, $title),)+
                }
            }
        }
    };
}

// Word, HTTP status, exit code (docs/reference/cli.md), and title.
codes! {
    /// The request cannot be read, or makes no sense.
    BadRequest = ("bad-request", 400, 2, "The request cannot be read");
    /// The request has no token, or an invalid one.
    Unauthorized = ("unauthorized", 401, 2, "A token is needed");
    /// The request to a webhook is not signed with the secret of the webhook.
    Unsigned = ("unsigned", 401, 2, "The signature is not valid");
    /// The request is from a page of another site, or for another server.
    Forbidden = ("forbidden", 403, 2, "The request is not authorised");
    /// Only a process on the server's machine may send this request.
    LocalOnly = ("local-only", 403, 2, "Only a command on the server's machine may ask for this");
    NotFound = ("not-found", 404, 2, "There is nothing at this address");
    /// The address accepts other methods.
    MethodNotAllowed = ("method-not-allowed", 405, 2, "The address accepts other methods");
    UnknownRun = ("unknown-run", 404, 2, "Unknown run");
    UnknownWorkflow = ("unknown-workflow", 404, 2, "Unknown workflow");
    /// The workflow that was to be replaced is no longer the one of this name.
    WorkflowChanged = ("workflow-changed", 412, 2, "The workflow is another one by now");
    UnknownState = ("unknown-state", 404, 2, "Unknown state");
    /// The value between runs is not the one that the caller expects.
    StateChanged = ("state-changed", 412, 2, "The state has another value by now");
    /// The store does not exist in the directory.
    NoStore = ("no-store", 404, 2, "The store does not exist");
    /// The directory has a store already.
    StoreExists = ("store-exists", 409, 2, "There is a store already");
    BackupRunning = ("backup-running", 409, 2, "Another backup is being written there");
    /// A run with this id exists already.
    RunExists = ("run-exists", 409, 2, "There is a run of this id");
    /// Another run has the same key of `concurrency`, and the policy is `skip`.
    SameKey = ("same-key", 409, 2, "Another run has the same concurrency key");
    /// The run has ended, and does not continue.
    RunEnded = ("run-ended", 409, 2, "The run has ended");
    NotRetried = ("not-retried", 409, 2, "The run did not end badly");
    NoPlace = ("no-place", 409, 2, "The run cannot be retried from there");
    /// Nothing in the run's workflow waits for the signal.
    NoSignal = ("no-signal", 409, 2, "The run waits for no such signal");
    /// The question that the signal answers does not accept the answer.
    RefusedAnswer = ("refused-answer", 422, 2, "The answer is refused");
    /// The wait that the signal answers is over.
    Answered = ("answered", 409, 2, "The question is not open any more");
    /// The address of a callback is too old.
    Expired = ("expired", 410, 2, "The address has expired");
    /// The run lacks a handler or a secret here, or this version cannot read its workflow.
    NotLoaded = ("not-loaded", 409, 3, "The run cannot continue with the server's configuration");
    /// The idempotency key was used for a different request.
    KeyReused = ("key-reused", 422, 2, "The idempotency key was used for another request");
    TooLarge = ("too-large", 413, 2, "The body is too large");
    /// The body did not arrive in time.
    TooSlow = ("too-slow", 408, 2, "The body did not arrive in time");
    MediaType = ("media-type", 415, 2, "The body has another type");
    /// The workflow has mistakes.
    RefusedWorkflow = ("refused-workflow", 422, 3, "The workflow is refused");
    RefusedEdit = ("refused-edit", 422, 3, "The text cannot be edited so");
    /// The input does not have the form that the workflow declares.
    RefusedInput = ("refused-input", 422, 2, "The input is refused");
    /// The engine has reached a limit that the operator has set. A later request may succeed.
    Busy = ("busy", 429, 8, "The server is at capacity");
    /// The engine is not ready yet, or about to stop. Try again.
    Unavailable = ("unavailable", 503, 8, "The server is not ready");
    /// The store is locked, damaged, full or gone.
    Store = ("store", 503, 8, "The store cannot do it now");
    /// Anything else.
    Internal = ("internal", 500, 1, "The server failed");
}

impl ErrorCode {
    /// Returns the code of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|code| code.word() == word).copied()
    }

    /// Returns the word that identifies the code in problem details, after `urn:windlass:`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        self.row().0
    }

    /// Returns the status of an HTTP response.
    #[must_use]
    pub const fn http_status(self) -> u16 {
        self.row().1
    }

    /// Returns the exit code of a command.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        self.row().2
    }

    /// Returns the description in a few words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.row().3
    }
}
