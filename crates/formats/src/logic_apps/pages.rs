//! The pagination policy of an Http action in Logic Apps ("Get more data, items, or records by using pagination").
//! The action follows the links to next pages until it has the requested number of rows (the items of all pages), and
//! returns all rows. It becomes a loop, so that no page is read twice after a crash.

use super::LogicApps;
use crate::actions::ActionReader;
use crate::actions::HttpRequest;
use crate::actions::part_of;
use crate::actions::{ActionFields, Body, member};
use crate::builder::{call, condition_of, looped, page_base, scoped, step, text};
use crate::reader::Reader;
use windlass_expression::{Binding, Template, Value};
use windlass_model::hir::{Block, Call, Keep, Loop, StepKind};
use windlass_model::model::{CollectMode, Expect, Name, OnLimit, OnRepeat, Pages};
use windlass_value::time::format_duration;

/// Maximum number of pages. If there are more pages, the action fails.
const PAGES: u64 = 100_000;

/// The members of a body that may have the link to the next page.
const LINKS: [&str; 2] = ["nextLink", "@odata.nextLink"];

impl ActionReader<'_, LogicApps> {
    /// Reads the number of rows that an action requests. Returns `None` if it has no pagination policy.
    pub(super) fn wanted_rows(&mut self, act: &mut ActionFields<'_>) -> Option<Template> {
        let configuration = act.fields.get("runtimeConfiguration")?;
        let policy = member(configuration, "paginationPolicy")?;
        let hint = "for example paginationPolicy: { minimumItemCount: 1000 }";
        let mut fields = self.fields(&policy.value, "`paginationPolicy`", hint)?;
        let wanted = fields.required(self, "minimumItemCount", policy.key_span, hint);
        fields.finish(self);
        let node = &wanted?.value;
        match self.whole(node) {
            Some(count @ 1..) => Some(Template::constant(count.into())),
            None if self.is_computed(node) => Some(self.template(node)),
            _ => {
                self.wrong_type(node, "`minimumItemCount`", "a whole number from 1", hint);
                None
            }
        }
    }

    pub(super) fn paged(
        &mut self,
        act: &mut ActionFields<'_>,
        wanted: Template,
        mut request: HttpRequest,
        timeout: Option<Template>,
    ) -> Body {
        let [page, count] = ["page", "rows"].map(|what| part_of(&act.name, what));
        for name in [&page, &count] {
            self.declare(name, act.span);
        }
        // The step that reads a page becomes the secure one. Values that are made of its values are then secure, too.
        for secure in self.secure.iter_mut().filter(|one| one.step == act.name) {
            secure.step = page.clone();
        }
        let action = act.name.clone();
        let before = |of: &Name| {
            let of = Binding::Previous(of.clone(), Some(action.clone()));
            Template::binding(of)
        };
        let outputs = || Template::binding(Binding::Outputs(page.clone()));
        let next = link(self, &before(&page));
        // All pages after the first are requested with GET.
        let later = [
            (text("method"), text("GET")),
            (text("body"), Template::constant(Value::Null)),
        ];
        let follow_up = self.asynchronous(act, &page, &mut request, Some(Expect::Json));
        for (key, value) in &mut request.members {
            if let Some((_, later)) = later.iter().find(|(changed, _)| changed == key) {
                let first = Binding::First(act.name.clone(), value.clone(), later.clone());
                *value = Template::binding(first);
            }
        }
        request.members.push((text("page"), next.clone()));
        request.members.push(page_base(page.clone()));
        request.members.push((text("parse"), text("json")));
        let inputs = Template::object(request.members);
        let asking = StepKind::Call(Call {
            attempt_timeout: request.attempt_timeout,
            ..call("http", inputs)
        });
        let mut asking = step(page.clone(), "http", asking, act.span);
        asking.retry = request.retry;
        // Without this check, the answer of a proxy that is not JSON would count as a last page without rows.
        asking.expect = Some(Expect::Json);
        asking.follow_up = follow_up;
        let rows = outputs().part("body").part("value");
        let so_far = [("before", before(&count)), ("rows", rows.clone())];
        let so_far = scoped(
            self,
            so_far,
            "(before or 0) + (rows | length if rows is sequence and rows is not string else 0)",
        );
        let counting = step(
            count.clone(),
            "compose",
            StepKind::Compose(so_far),
            act.span,
        );
        let ends = [
            ("link", link(self, &outputs())),
            ("rows", Template::binding(Binding::Outputs(count))),
            ("wanted", wanted),
        ];
        let ends = condition_of(scoped(self, ends, "not link or rows >= wanted"));
        let keep = |name: &str, take, value| Keep {
            name: Name::from(name),
            take,
            of: page.clone(),
            value,
        };
        let most = Template::constant(i64::try_from(self.max_count.min(PAGES)).unwrap_or(1).into());
        let body = Block::Sequence(vec![asking, counting]);
        let spec = Loop {
            condition_text: String::from("no link to a next page, or a full page of rows"),
            timeout: Some(text(&format_duration(self.max_timeout))),
            on_limit: OnLimit::Fail,
            on_timeout: OnLimit::Fail,
            keep: vec![
                keep("first", CollectMode::First, outputs()),
                keep("rows", CollectMode::All, rows),
            ],
            pages: Some(Pages {
                token: next,
                on_repeat: OnRepeat::Fail,
            }),
            ..looped(ends, most, body)
        };
        let collected = Template::binding(Binding::Root(Name::from("result"))).part("kept");
        Body {
            timeout,
            output: Some(Template::binding(Binding::Paged(
                collected,
                LINKS.map(Name::from),
            ))),
            ..StepKind::Loop(Box::new(spec)).into()
        }
    }
}

/// Makes the template of the link to the next page. It is null if the response has no link.
fn link(reader: &Reader<'_>, response: &Template) -> Template {
    let body = response.clone().part("body");
    let [plain, odata] = LINKS.map(|name| body.clone().part(name));
    scoped(
        reader,
        [("plain", plain), ("odata", odata)],
        "plain or odata or none",
    )
}
