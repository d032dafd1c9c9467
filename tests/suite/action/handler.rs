//! `activity` and `actor`: closures, commands and URLs.

use super::{gist, plain, request, soon, value};
use crate::{app, support};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::post;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use windlass::ActivityError;
use windlass_actions::Registry;
use windlass_expression::Value;
use windlass_model::model::{Fault, Handler, HandlerTarget};
use windlass_source::source::Span;

async fn call(registry: &Registry, inputs: Json) -> Result<Json, Fault> {
    let request = request("activity", inputs);
    Ok(plain(&soon(registry.execute(&request)).await?))
}

fn with_command(argv: &[&str]) -> Registry {
    let mut registry = Registry::new();
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    registry.register_handler("it", HandlerTarget::Command(argv));
    registry
}

fn with_url(url: String) -> Registry {
    let mut registry = Registry::new();
    registry.register_handler("it", HandlerTarget::Url(url));
    registry
}

#[tokio::test]
async fn a_closure_gets_its_context() {
    let mut registry = Registry::new();
    registry.register("it", |context, _: Value| async move {
        Ok(Value::array(vec![
            context.input,
            Value::text(context.idempotency_key),
            Value::from(context.attempt),
            Value::text(&*context.action),
        ]))
    });
    let given = call(
        &registry,
        json!({ "activityType": "it", "input": { "a": 1 } }),
    )
    .await;
    assert_eq!(
        given.unwrap(),
        json!([{ "a": 1 }, "run-1/loop[3]/an_action", 2, "an_action"])
    );
}

#[tokio::test]
async fn the_input_is_input_or_everything_except_the_name() {
    let mut registry = Registry::new();
    registry.register("it", |context, _: Value| async move { Ok(context.input) });
    for (inputs, expected) in [
        (
            json!({ "activityType": "it", "query": "q", "n": 1 }),
            json!({ "query": "q", "n": 1 }),
        ),
        (
            json!({ "activityType": "it", "input": 5, "query": "q" }),
            json!(5),
        ),
        (json!({ "activityType": "it", "input": null }), Json::Null),
        (json!({ "activityType": "it" }), json!({})),
    ] {
        assert_eq!(call(&registry, inputs).await.unwrap(), expected);
    }
    let actor = request("actor", json!({ "actorType": "it", "input": [1] }));
    assert_eq!(plain(&registry.execute(&actor).await.unwrap()), json!([1]));
}

#[tokio::test]
async fn a_closure_that_fails_is_retried_unless_it_blames_the_input() {
    let mut registry = Registry::new();
    registry.register("fails", |_, _: Value| async {
        Err::<Value, _>(ActivityError::retryable("no more").kind("quota").code(7))
    });
    registry.register("blames", |_, _: Value| async {
        Err::<Value, _>(ActivityError::permanent("no such city"))
    });
    let fails = call(&registry, json!({ "activityType": "fails" })).await;
    assert_eq!(gist(&fails.unwrap_err()), json!(["quota", "7", true, null]));
    let blames = call(&registry, json!({ "activityType": "blames" })).await;
    assert_eq!(
        gist(&blames.unwrap_err()),
        json!(["handler", null, false, null])
    );
}

#[tokio::test]
async fn an_activity_has_types() {
    #[derive(serde::Deserialize)]
    struct Order {
        amount: u32,
    }
    let mut registry = Registry::new();
    registry.register("charge", |_, order: Order| async move {
        Ok(json!({ "paid": order.amount }))
    });
    registry.register("large", |_, (): ()| async { Ok(u64::MAX) });
    let charge = |input| json!({ "activityType": "charge", "input": input });
    let paid = call(&registry, charge(json!({ "amount": 5, "more": [] }))).await;
    assert_eq!(paid.unwrap(), json!({ "paid": 5 }));
    let refused = call(&registry, charge(json!({ "amount": "5" }))).await;
    let refused = refused.unwrap_err();
    assert_eq!(gist(&refused), json!(["input", null, false, null]));
    assert_eq!(
        refused.message,
        "the activity `charge` cannot read its input: invalid type: string \"5\", expected u32"
    );
    let large = json!({ "activityType": "large", "input": null });
    let large = call(&registry, large).await.unwrap_err();
    assert_eq!(gist(&large), json!(["handler", null, false, null]));
    assert!(
        large.message.contains("does not fit 64 bits"),
        "{}",
        large.message
    );
}

#[tokio::test]
async fn a_panic_is_a_fault() {
    let mut registry = Registry::new();
    registry.register("later", |context, _: Value| async move {
        tokio::task::yield_now().await;
        match context.input.as_int() {
            Some(number) => Ok(Value::Int(number)),
            None => panic!("no number: {}", context.input.kind()),
        }
    });
    registry.register(
        "at_once",
        |_, _: Value| -> std::future::Ready<Result<Value, ActivityError>> { panic!("at once") },
    );
    let later = json!({ "activityType": "later", "input": "x" });
    let fault = call(&registry, later).await.unwrap_err();
    assert_eq!(gist(&fault), json!(["handler", null, true, null]));
    assert_eq!(fault.message, "`an_action` panicked: no number: string");
    let fault = call(&registry, json!({ "activityType": "at_once" })).await;
    assert_eq!(fault.unwrap_err().message, "`an_action` panicked: at once");
    // The registry continues to work afterwards.
    let fine = call(&registry, json!({ "activityType": "later", "input": 5 })).await;
    assert_eq!(fine.unwrap(), 5);
}

#[tokio::test]
async fn a_timeout_drops_a_closure() {
    let (dropped, on_drop) = oneshot::channel::<()>();
    let hold = Arc::new(std::sync::Mutex::new(Some(dropped)));
    let mut registry = Registry::new();
    registry.register("hangs", move |_, _: Value| {
        let held = hold.lock().unwrap().take();
        async move {
            std::future::pending::<()>().await;
            drop(held);
            Ok(Value::Null)
        }
    });
    let mut hangs = request("activity", json!({ "activityType": "hangs" }));
    hangs.timeout_ms = Some(50);
    let fault = soon(registry.execute(&hangs)).await.unwrap_err();
    assert_eq!(gist(&fault), json!(["timeout", null, true, null]));
    assert!(
        soon(on_drop).await.is_err(),
        "nothing was sent, only dropped"
    );
}

#[tokio::test]
async fn a_command_reads_json_and_writes_json() {
    let registry = with_command(&["sh", "-c", "cat; echo $WINDLASS_ATTEMPT >&2"]);
    let input = json!({ "activityType": "it", "input": { "a": ["ü", null] } });
    assert_eq!(
        call(&registry, input).await.unwrap(),
        json!({ "a": ["ü", null] })
    );

    let key = with_command(&["sh", "-c", "echo \"$WINDLASS_IDEMPOTENCY_KEY\""]);
    let given = call(&key, json!({ "activityType": "it" })).await;
    assert_eq!(given.unwrap(), "run-1/loop[3]/an_action");
    let silent = with_command(&["true"]);
    assert_eq!(
        call(&silent, json!({ "activityType": "it" }))
            .await
            .unwrap(),
        Json::Null
    );
}

#[tokio::test]
async fn a_command_that_fails_is_a_handler_fault() {
    let registry = with_command(&["sh", "-c", "echo part; echo no luck >&2; exit 4"]);
    let fault = call(&registry, json!({ "activityType": "it" }))
        .await
        .unwrap_err();
    assert_eq!(gist(&fault), json!(["handler", "4", true, null]));
    assert_eq!(
        fault.message,
        "the handler `it` ended with exit code 4: no luck"
    );
    let output = plain(fault.output.as_ref().unwrap());
    assert_eq!(
        output,
        json!({ "exitCode": 4, "stdout": "part\n", "stderr": "no luck\n" })
    );

    let missing = with_command(&["no-such-program"]);
    let fault = call(&missing, json!({ "activityType": "it" }))
        .await
        .unwrap_err();
    assert_eq!(gist(&fault), json!(["handler", null, true, null]));
    assert!(
        fault.message.contains("cannot start `no-such-program`"),
        "{fault:?}"
    );
    let empty = with_command(&[]);
    let fault = call(&empty, json!({ "activityType": "it" }))
        .await
        .unwrap_err();
    assert_eq!(gist(&fault), json!(["input", null, false, null]));
}

#[tokio::test]
async fn a_url_gets_json_and_gives_json() {
    let url = support::serve(app::router(app::Options::default())).await;
    let registry = with_url(format!("{url}/echo"));
    let given = call(
        &registry,
        json!({ "activityType": "it", "input": { "a": 1 } }),
    )
    .await;
    let seen = given.unwrap();
    assert_eq!(
        (&seen["method"], &seen["body"]),
        (&json!("POST"), &json!({ "a": 1 }))
    );
    assert_eq!(seen["headers"]["content-type"], "application/json");
    assert_eq!(
        seen["headers"]["idempotency-key"],
        "run-1/loop[3]/an_action"
    );
}

#[tokio::test]
async fn a_url_that_fails_is_a_handler_fault() {
    let answer = || async {
        let headers = [(header::RETRY_AFTER, "3")];
        (StatusCode::SERVICE_UNAVAILABLE, headers, "busy")
    };
    let url = support::serve(Router::new().route("/", post(answer))).await;
    let fault = call(&with_url(url), json!({ "activityType": "it" }))
        .await
        .unwrap_err();
    assert_eq!(gist(&fault), json!(["handler", "503", true, 3000]));
    assert!(
        fault.message.starts_with("the handler `it`: POST http"),
        "{fault:?}"
    );
    assert_eq!(plain(fault.output.as_ref().unwrap())["body"], "busy");

    let fault = call(&with_url("no url".into()), json!({ "activityType": "it" })).await;
    assert_eq!(
        gist(&fault.unwrap_err()),
        json!(["input", null, false, null])
    );
}

#[tokio::test]
async fn unknown_names_come_with_a_hint() {
    let mut registry = Registry::new();
    registry.register("search", |_, _: Value| async { Ok(Value::Null) });
    let fault = call(&registry, json!({ "activityType": "serach" }))
        .await
        .unwrap_err();
    assert_eq!(gist(&fault), json!(["input", null, false, null]));
    assert_eq!(
        fault.message,
        "unknown handler `serach`; did you mean `search`?"
    );
    let fault = call(&registry, json!({ "input": 1 })).await.unwrap_err();
    assert_eq!(fault.message, "`activityType` is missing");
    let fault = registry
        .execute(&request("htpt", json!({})))
        .await
        .unwrap_err();
    assert_eq!(
        fault.message,
        "unknown executor `htpt`; did you mean `http`?"
    );
    let fault = registry.execute(&request("frobnicate", json!({}))).await;
    assert_eq!(fault.unwrap_err().message, "unknown executor `frobnicate`");
}

#[tokio::test]
async fn handlers_of_a_workflow_lie_over_those_of_the_engine() {
    let mut engine = Registry::new();
    engine.register("a", |_, _: Value| async { Ok(Value::text("engine")) });
    engine.register("b", |_, _: Value| async { Ok(Value::text("engine")) });
    let declared = ["b", "c"].map(|name| Handler {
        name: name.into(),
        target: HandlerTarget::Command(vec!["echo".into(), "workflow".into()]),
        span: Span::default(),
    });
    let layered = engine.with_handlers(&declared);
    for (registry, name, expected) in [
        (&layered, "a", Some("engine")),
        (&layered, "b", Some("workflow")),
        (&layered, "c", Some("workflow")),
        (&engine, "b", Some("engine")),
        (&engine, "c", None),
    ] {
        let given = call(registry, json!({ "activityType": name })).await.ok();
        assert_eq!(given, expected.map(|text| json!(text)), "{name}");
        assert_eq!(registry.answers(name), expected.is_some());
    }
    assert_eq!(layered.handler_names().collect::<Vec<_>>(), ["a", "b", "c"]);
    for executor in ["http", "shell", "activity", "actor", "connector"] {
        assert!(layered.executor_names().any(|name| name == executor));
    }
    assert!(!layered.executor_names().any(|name| name == "htpt"));
}

#[tokio::test]
async fn an_executor_can_be_added() {
    struct Doubles(mpsc::UnboundedSender<u32>);
    impl windlass_actions::Executor for Doubles {
        fn execute<'a>(
            &'a self,
            request: &'a windlass_model::model::Request,
        ) -> windlass_actions::Attempt<'a> {
            Box::pin(async move {
                self.0.send(request.attempt).unwrap();
                let number = request.inputs.as_int().unwrap_or_default();
                Ok(Value::Int(number * 2))
            })
        }
    }
    let (sender, mut attempts) = mpsc::unbounded_channel();
    let mut registry = Registry::new();
    registry.register_executor("double", Doubles(sender));
    let given = registry.execute(&request("double", json!(21))).await;
    assert_eq!(given.unwrap(), value(&json!(42)));
    assert_eq!(attempts.recv().await, Some(2));
}
