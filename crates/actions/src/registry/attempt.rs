//! An attempt at an action: with the secrets that it names, in its working context, with limits for its time and the size
//! of its result. It also catches panics. It never retries: the machine decides on retries.

use super::Registry;
use crate::execution_context::ExecutionContext;
use crate::handler::unknown;
use crate::http::DEFAULT_TIMEOUT;
use crate::identity;
use crate::inputs::{invalid, scalar};
use crate::mask::Mask;
use crate::secrets::ResolvedSecrets;
use crate::secure;
use crate::untrusted;
use crate::{Attempt, Executor};
use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use windlass_expression::{MAX_ACTION_DEPTH, Value};
use windlass_model::model::{Fault, Origin, RATE, Request, fault_kind};

/// Maximum size in bytes of an action's whole result. Executors read at most 16 MiB. A result may contain them twice:
/// as text and parsed.
const MAX_RESULT_BYTES: usize = 40 << 20;

impl Registry {
    /// Makes one attempt at an action. Dropping the future aborts it.
    pub async fn execute(&self, request: &Request) -> Result<Value, Fault> {
        match secure::revealed(request) {
            None => self.resolve_secrets(request, Vec::new()).await,
            Some(revealed) => {
                let masks = vec![Arc::clone(&revealed.mask)];
                revealed.outcome(self.resolve_secrets(&revealed.request, masks).await)
            }
        }
    }

    /// Makes one attempt with the secrets that the action names. `masks` find the texts of secure inputs.
    async fn resolve_secrets(
        &self,
        request: &Request,
        mut masks: Vec<Arc<Mask>>,
    ) -> Result<Value, Fault> {
        if let Some(result) = self.stubs().answer(request) {
            return result;
        }
        let quiet = !masks.is_empty() || self.secure.contains(&request.action);
        self.secrets.fetch(request).await?;
        let opened = self.secrets.open(request)?;
        match opened {
            None => self.in_working_context(request, masks, quiet).await,
            Some(ResolvedSecrets { request, mask }) => {
                masks.push(Arc::clone(&mask));
                let outcome = self.in_working_context(&request, masks, quiet).await;
                // The output of an append has only what its inputs have. The next append opens its path.
                match request.appends() && self.secrets.named_by(&request.action).is_empty() {
                    true => outcome,
                    false => mask.outcome(outcome),
                }
            }
        }
    }

    /// Makes one attempt in its execution context, which has the folder, the origin, and whether the attempt may be a
    /// repetition.
    async fn in_working_context(
        &self,
        request: &Request,
        secrets: Vec<Arc<Mask>>,
        quiet: bool,
    ) -> Result<Value, Fault> {
        let here = ExecutionContext {
            secrets,
            quiet,
            ..self.context.clone()
        };
        here.scope(self.attempt(request)).await
    }

    async fn attempt(&self, request: &Request) -> Result<Value, Fault> {
        if let Some(named) = request.rate()
            && scalar(RATE, &named.revealed())?.is_none_or(|name| name.is_empty())
        {
            return Err(invalid("`rate` is empty: it is the name of a rate limit"));
        }
        if let Some(flag) = self.policy.denies(&request.executor) {
            let message = format!("`{}` is not allowed here: {flag}", request.executor);
            return Err(Fault::new(fault_kind::DENIED, message));
        }
        if let Some(flag) = self
            .policy
            .denies_inputs(&request.executor, &request.inputs)
        {
            let message = format!("`{}` may not use files here: {flag}", request.executor);
            return Err(Fault::new(fault_kind::DENIED, message));
        }
        if let Some(what) = untrusted::denied(self.policy, request) {
            return Err(Fault::new(fault_kind::DENIED, what));
        }
        if &*request.executor == "http" {
            // Boxed, because otherwise the future of every attempt would contain the space for this future.
            let signed = Box::pin(identity::signed(&self.handlers, request)).await?;
            if let Some(signed) = signed {
                return self.run_executor(&signed).await;
            }
        }
        self.run_executor(request).await
    }

    async fn run_executor(&self, request: &Request) -> Result<Value, Fault> {
        let Some(executor) = self.executor(&request.executor) else {
            let names = self.executor_names();
            return Err(unknown("executor", &request.executor, names));
        };
        let limit = self.timeout_of(executor, request);
        let attempt = catch_panic(&request.action, || executor.execute(request));
        let outcome = match limit {
            None => attempt.await,
            Some(limit) => tokio::time::timeout(limit, attempt)
                .await
                .unwrap_or_else(|_| Err(timeout_fault(limit))),
        };
        enforce_result_limits(outcome)
    }

    /// Returns the timeout of an attempt. A guest's stream of events gets a timeout, because otherwise it would occupy
    /// its slot for ever.
    fn timeout_of(&self, executor: &dyn Executor, request: &Request) -> Option<Duration> {
        let own = executor.timeout(request);
        match self.origin() {
            Origin::Guest if request.reads_events() => own.or(Some(DEFAULT_TIMEOUT)),
            Origin::Guest | Origin::Operator => own,
        }
    }
}

fn timeout_fault(limit: Duration) -> Fault {
    let message = format!("the attempt took longer than {limit:?}");
    Fault::new(fault_kind::TIMEOUT, message).transient()
}

/// Polls an attempt so that a panic in it becomes the fault of this attempt only.
async fn catch_panic<'a>(
    action: &str,
    start: impl FnOnce() -> Attempt<'a>,
) -> Result<Value, Fault> {
    let mut attempt =
        catch_unwind(AssertUnwindSafe(start)).map_err(|payload| panic_fault(action, &*payload))?;
    poll_fn(|context| {
        // This is unwind safe, because an attempt that panicked is never polled again.
        catch_unwind(AssertUnwindSafe(|| attempt.as_mut().poll(context)))
            .unwrap_or_else(|payload| Poll::Ready(Err(panic_fault(action, &*payload))))
    })
    .await
}

fn panic_fault(action: &str, payload: &(dyn Any + Send)) -> Fault {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    Fault::new(fault_kind::HANDLER, format!("`{action}` panicked: {text}")).transient()
}

/// Returns the outcome, or a fault if the value exceeds the limits for storage. If the output of a fault is too large,
/// the fault is returned without the output.
fn enforce_result_limits(outcome: Result<Value, Fault>) -> Result<Value, Fault> {
    match outcome {
        Ok(value) => match limit_violation(&value) {
            Some(why) => Err(Fault::new(
                fault_kind::TOO_LARGE,
                format!("what the action gave {why}"),
            )),
            None => Ok(value),
        },
        Err(fault) => Err(Fault {
            output: fault
                .output
                .filter(|output| limit_violation(output).is_none()),
            ..fault
        }),
    }
}

fn limit_violation(value: &Value) -> Option<String> {
    if !value.depth_within(MAX_ACTION_DEPTH) {
        return Some(format!("nests deeper than {MAX_ACTION_DEPTH} levels"));
    }
    let too_large = !value.fits_in_bytes(MAX_RESULT_BYTES);
    too_large.then(|| format!("has more than {MAX_RESULT_BYTES} bytes"))
}

#[cfg(test)]
mod tests {
    use super::{Origin, Registry, Value};
    use crate::asking;
    use std::time::Duration;
    use windlass_model::model::{Dialect, HandlerTarget};

    fn default_timeout(registry: &Registry, executor: &str, inputs: &str) -> Option<Duration> {
        let request = asking(executor, inputs);
        let executor = registry.executor(executor).unwrap();
        registry.timeout_of(executor, &request)
    }

    #[test]
    fn only_what_speaks_http_has_a_timeout_of_its_own() {
        let mut registry = Registry::new();
        registry.register_handler("url", HandlerTarget::Url("http://x".into()));
        registry.register_handler("command", HandlerTarget::Command(vec!["x".into()]));
        registry.register("closure", |_, _: Value| async { Ok(Value::Null) });
        let own = Some(Duration::from_secs(100));
        for (executor, inputs, expected) in [
            ("http", "{}", own),
            ("activity", r#"{"activityType": "url"}"#, own),
            ("shell", "{}", None),
            ("actor", r#"{"actorType": "command"}"#, None),
            ("activity", r#"{"activityType": "closure"}"#, None),
            ("activity", r#"{"activityType": "unknown"}"#, None),
        ] {
            let given = default_timeout(&registry, executor, inputs);
            assert_eq!(given, expected, "{executor} {inputs}");
        }
        // A stream of events has no timeout, unless it is a guest's.
        let guest = registry.of(Origin::Guest, Dialect::Loom);
        for (registry, expected) in [(&registry, None), (&guest, own)] {
            let given = default_timeout(registry, "http", r#"{"events": true}"#);
            assert_eq!(given, expected);
        }
    }
}
