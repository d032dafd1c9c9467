//! Outputs in which a secret is masked, and what later requests and files make of them.

use super::first_use::Folder;
use super::paginate::serve;
use serde_json::{Value, json};

const SECRET: [(&str, &str); 1] = [("WINDLASS_SECRET_K", "sekret-abc123")];

/// The answer for a page whose links repeat the key of the request. Each link is made by `link` from the number of the
/// page.
fn page(path: &str, link: impl Fn(usize) -> String) -> (Vec<(&'static str, String)>, Value) {
    let number = path
        .split_once("page=")
        .map_or(1, |(_, rest)| rest.parse().unwrap());
    let next = (number < 3).then(|| link(number + 1));
    let header = next.iter().map(|next| format!("<{next}>; rel=\"next\""));
    let header = header.map(|link| ("link", link)).collect();
    let results = [json!({ "id": number })];
    (header, json!({ "results": results, "next": next }))
}

#[test]
fn a_secret_that_a_link_repeats_is_sent_again_to_its_server() {
    let folder = Folder::new();
    for (given, link, is_repeated) in [
        (
            "/items?api_key=${secret:K}",
            "?api_key=sekret-abc123&page=",
            true,
        ),
        (
            "/items?api_key=${secret:K}",
            "?a=b&api%5fkey=sekret%2Dabc123&page=",
            true,
        ),
        (
            "/v1/${secret:K}/items",
            "/v1/sekret-abc123/list?page=",
            true,
        ),
        ("/v1/${secret:K}/items", "other?page=", true),
        // No part of the address of the line has the secret in this place.
        (
            "/items?api_key=${secret:K}",
            "?token=sekret-abc123&page=",
            false,
        ),
        ("/items?api_key=${secret:K}", "/sekret-abc123?page=", false),
    ] {
        let (base, requested) = serve(move |path| {
            let (headers, body) = page(path, |number| format!("{link}{number}"));
            (200, headers, body)
        });
        for next in ["body.next", "link"] {
            requested.lock().unwrap().clear();
            let url = format!("{base}{given}");
            let line = [
                "paginate",
                &url,
                "--next",
                next,
                "--items",
                "body.results",
                "--to",
                "r",
            ];
            let ran = folder.run_with(&SECRET, &line);
            let paths = requested.lock().unwrap().clone();
            assert!(!paths.iter().any(|path| path.contains("***")), "{paths:?}");
            if is_repeated {
                ran.left(0, &[]);
                assert_eq!(paths.len(), 3, "{paths:?}");
                let decoded = paths.iter().map(|path| path.replace("%2D", "-"));
                assert!(
                    { decoded }.all(|path| path.contains("sekret-abc123")),
                    "{paths:?}"
                );
            } else {
                let ran = ran.left(1, &["the address of the next page has `", "${secret:NAME}"]);
                assert!(!ran.err.contains("sekret"), "{ran:?}");
                assert_eq!(paths.len(), 1, "{paths:?}");
            }
        }
    }
}

#[test]
fn a_masked_secret_is_not_sent_to_another_server() {
    let folder = Folder::new();
    let (other, stolen) = serve(|_| (200, vec![], json!({ "results": [], "next": null })));
    let link = format!("{other}/items?api_key=***&page=");
    let (base, _) = serve(move |path| {
        let (headers, body) = page(path, |number| format!("{link}{number}"));
        (200, headers, body)
    });
    let url = format!("{base}/items?api_key=${{secret:K}}");
    let line = [
        "paginate",
        &url,
        "--next",
        "body.next",
        "--items",
        "body.results",
        "--to",
        "r",
    ];
    folder
        .run_with(&SECRET, &line)
        .left(1, &["only to the server of `uri`", &base]);
    assert_eq!(stolen.lock().unwrap().len(), 0);
}

#[test]
fn an_address_of_an_answer_is_used_in_a_file_as_in_a_line() {
    let folder = Folder::new();
    let (base, requested) = serve(|path| {
        let (headers, body) = page(path, |number| {
            format!("?api_key=sekret-abc123&page={number}")
        });
        (200, headers, body)
    });
    let workflow = |inputs: &str| {
        format!(
            r#"
variables: {{ next: null }}
actions:
  first: {{ type: http, inputs: {{ uri: "{base}/items?api_key=${{secret:K}}" }} }}
  second: {{ type: http, inputs: {{ {inputs} }} }}
outputs: "@body('second').results[0].id"
"#
        )
    };
    let page = format!(
        r#"uri: "{base}/items", queries: {{ api_key: "${{secret:K}}" }}, page: "{{{{ actions.first.outputs.body.next }}}}""#
    );
    folder.file("page.yaml", workflow(&page));
    let ran = folder.run_with(&SECRET, &["run", "page.yaml"]).left(0, &[]);
    assert_eq!(ran.out, "2\n");
    let uri = format!(r#"uri: "{base}{{{{ actions.first.outputs.body.next }}}}""#);
    folder.file("uri.yaml", workflow(&uri));
    requested.lock().unwrap().clear();
    folder
        .run_with(&SECRET, &["run", "uri.yaml"])
        .left(1, &["`uri` has `api_key=***`", "${secret:NAME}"]);
    assert_eq!(requested.lock().unwrap().len(), 1);
}

#[test]
fn a_short_secret_changes_no_names() {
    let folder = Folder::new();
    let (base, _) = serve(|_| {
        let row = json!({ "name": "administrator", "rows": "admin", "file": "names" });
        (200, vec![], json!({ "items": [row], "next": null }))
    });
    for (secret, row) in [
        ("admin", "***istrator,***,names"),
        ("name", "administrator,admin,***s"),
        ("rows", "administrator,admin,names"),
        ("file", "administrator,admin,names"),
    ] {
        let line = [
            "paginate",
            &base,
            "-H",
            "x-user: ${secret:USER}",
            "--items",
            "body.items",
            "--to",
            "r.csv",
        ];
        let variables = [("WINDLASS_SECRET_USER", secret)];
        let ran = folder.run_with(&variables, &line).left(0, &[]);
        let result: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(result["rows"], 1, "{ran:?}");
        assert_eq!(folder.read("r.csv"), format!("name,rows,file\n{row}\n"));
    }
}

#[test]
fn a_secret_in_a_condition_of_a_line_is_refused() {
    let folder = Folder::new();
    let until = "body.p == '${secret:K}'";
    let poll = ["poll", "--url", "http://127.0.0.1:9/", "--until", until];
    folder
        .run_with(&SECRET, &poll)
        .left(2, &["error[secret-outside]", "--until:1:12"]);
}

#[test]
fn an_empty_secret_is_missing_and_hides_no_other_source() {
    let folder = Folder::new();
    let (base, requested) = serve(|_| (200, vec![], json!({})));
    let url = format!("{base}/?k=${{secret:K}}");
    let poll = ["poll", "--times", "1", "--url", &url];
    let empty = [("WINDLASS_SECRET_K", "")];
    let variable = "$WINDLASS_SECRET_K (which is empty)";
    folder.run_with(&empty, &poll).left(1, &[variable]);
    folder.file("K", "\n");
    let secrets = ["poll", "--times", "1", "--secrets", ".", "--url", &url];
    folder
        .run_with(&empty, &secrets)
        .left(1, &["K (which is empty), $WINDLASS_SECRET_K (which"]);
    assert_eq!(requested.lock().unwrap().len(), 0);
    let mut command = secrets.to_vec();
    command.extend(["--secret-command", "echo full; :"]);
    folder.run_with(&empty, &command).left(0, &[]);
    assert_eq!(*requested.lock().unwrap(), ["/?k=full"]);
}

/// The output of an append is the path that the next append opens.
#[test]
fn a_secret_may_be_a_word_of_the_path_of_the_rows() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("sekret-abc123")).unwrap();
    let (base, _) = serve(|path| {
        let (headers, body) = page(path, |number| format!("/items?page={number}"));
        (200, headers, body)
    });
    let url = format!("{base}/items");
    let line = [
        "paginate",
        &url,
        "-H",
        "key: ${secret:K}",
        "--next",
        "body.next",
        "--items",
        "body.results",
        "--to",
        "sekret-abc123/rows.csv",
    ];
    let ran = folder.run_with(&SECRET, &line);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rows = std::fs::read_to_string(folder.path().join("sekret-abc123/rows.csv")).unwrap();
    assert_eq!(rows, "id\n1\n2\n3\n");
}
