//! What a one-line command refuses, and what it says about the process that executes its run.

use super::first_use::Folder;
use super::paginate::serve;
use crate::serve::Start;
use serde_json::json;

#[test]
fn a_request_of_another_process_has_its_environment() {
    let folder = Folder::new();
    let (base, _) = serve(|_| (200, vec![], json!([])));
    let server = Start::new(&folder.path().join("state")).spawn_with(|_| {});
    for line in [
        &["poll", "--url", &base][..],
        &["paginate", &base, "--to", "rows"],
    ] {
        let note = "note: another process owns the store and executes the run";
        folder.run(line).left(0, &[note]);
    }
    server.stop();
}
