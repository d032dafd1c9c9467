//! `windlass backup`, `windlass restore` and `windlass migrate`.
//! A backup is a copy of the store, also while a process owns it. A restore makes a store from such a copy. A
//! migration replaces the store by a copy in another database.

use super::access::{command, is_owned};
use super::args::{BackupArgs, Global, MigrateArgs, RestoreArgs};
use super::audit::audited;
use super::exit::{Exit, Failure};
use super::output::{self, Format};
use std::path::Path;
use windlass_engine::{
    BackedUp, EngineError, ErrorCode, StoreError, migrate as migrated, restore as restored,
};

pub async fn backup(global: &Global, args: &BackupArgs) -> Result<Exit, Failure> {
    check_no_server(global, "backup")?;
    // The path is made absolute, because the owner may have another working directory.
    let dir = std::path::absolute(&args.dest).map_err(Failure::Machine)?;
    let state = std::path::absolute(&global.state).map_err(Failure::Machine)?;
    if dir.starts_with(state.join("store")) {
        return Err(Failure::Usage(format!(
            "{} is in the directory of the database, which can be replaced: choose another directory",
            dir.display()
        )));
    }
    check_directory(&dir)?;
    let copied = command(
        global,
        async |client| client.backup(&dir).await,
        async |engine| audited(global, "backup", None, async { engine.backup(&dir) }).await,
    );
    let copied = copied.await.map_err(|failure| match failure.code() {
        Some(ErrorCode::StoreExists) => Failure::Usage(format!(
            "{} already contains a store: choose another directory, or move that store away",
            dir.display()
        )),
        _ => failure,
    })?;
    print_result(args.output.output, &copied, "copied to")
}

pub async fn restore(global: &Global, args: &RestoreArgs) -> Result<Exit, Failure> {
    check_no_server(global, "restore")?;
    if is_owned(global).await? {
        return Err(Failure::Taken(String::from(
            "a process owns the store to replace: stop it first",
        )));
    }
    // A copy has the same database as its original, so `--store` must name this one.
    if let Some(kind) = global.store {
        kind.check(&args.source).map_err(EngineError::from)?;
    }
    check_directory(&global.state)?;
    if let (Ok(source), Ok(state)) = (args.source.canonicalize(), global.state.canonicalize())
        && source == state
    {
        return Err(Failure::Usage(format!(
            "{} is the store to replace: name the directory of a backup",
            args.source.display()
        )));
    }
    let copied = match restored(&args.source, &global.state, args.replace) {
        Err(EngineError::NoStore(source)) => {
            return Err(Failure::Usage(format!(
                "no store in {}: name the directory of a backup",
                source.display()
            )));
        }
        Err(EngineError::Store(StoreError::Locked { path }))
            if path == args.source.display().to_string() =>
        {
            return Err(Failure::Taken(format!(
                "a process owns the store in {path}: copy it with `windlass backup DEST --state {path}`, and restore the copy"
            )));
        }
        // The store that is replaced may be damaged, so these errors are about the backup.
        Err(EngineError::Store(StoreError::Corrupt { what })) => {
            return Err(damaged(&args.source, what, true));
        }
        Err(EngineError::Store(StoreError::Unreadable(what))) => {
            return Err(damaged(&args.source, what.to_owned(), false));
        }
        restored => restored?,
    };
    print_result(args.output.output, &copied, "restored in")
}

pub async fn migrate(global: &Global, args: &MigrateArgs) -> Result<Exit, Failure> {
    check_no_server(global, "migrate")?;
    // `--store` names the database of a new store. So it is not compared with the database of the store to migrate.
    let any = Global {
        store: None,
        ..global.clone()
    };
    if is_owned(&any).await? {
        return Err(Failure::Taken(String::from(
            "a process owns the store to migrate: stop it first",
        )));
    }
    let done = migrated(&global.state, args.to)?;
    output::show(args.output.output, &done, || {
        let dir = global.state.display();
        match &done.old {
            Some(old) => format!(
                "{} now keeps the store in {dir}; compared {}; the old store is {old}",
                done.store,
                output::counted(done.records, "record"),
            ),
            None => format!("the store in {dir} already uses {}", done.store),
        }
    })
}

fn damaged(source: &Path, what: String, is_readable: bool) -> Failure {
    Failure::DamagedBackup {
        dir: source.display().to_string(),
        what,
        is_readable,
    }
}

/// Refuses a path that has a file in the place of a directory.
fn check_directory(dir: &Path) -> Result<(), Failure> {
    match dir.exists() && !dir.is_dir() {
        true => Err(Failure::Usage(format!(
            "{} is not a directory",
            dir.display()
        ))),
        false => Ok(()),
    }
}

fn check_no_server(global: &Global, what: &str) -> Result<(), Failure> {
    match &global.server {
        None => Ok(()),
        Some(_) => Err(Failure::Usage(format!(
            "copies of a store are made where it is: `windlass {what}` on the server's machine"
        ))),
    }
}

fn print_result(format: Format, copied: &BackedUp, done: &str) -> Result<Exit, Failure> {
    output::show(format, copied, || {
        let runs = output::counted(copied.runs, "run");
        let mut text = format!("{runs} {done} {}, and read again there", copied.dir);
        if let Some(old) = &copied.old {
            text.push_str(&format!("; the old store is {old}"));
        }
        text
    })
}
