//! The model of the examples. It implements OpenAI's chat protocol and recognises a few prompts by their words. Its
//! first answer is wrong; it corrects the answer when the prompt names the mistake.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use serde_json::{Value, json};

/// `POST /v1/chat/completions`.
pub async fn chat(Json(request): Json<Value>) -> Response {
    let Some(messages) = request.get("messages").and_then(Value::as_array) else {
        let error = json!({ "error": { "message": "there are no messages" } });
        return (StatusCode::BAD_REQUEST, Json(error)).into_response();
    };
    let texts: Vec<&str> = messages
        .iter()
        .filter_map(|message| message.get("content")?.as_str())
        .collect();
    let last = texts.last().copied().unwrap_or_default();
    let answer = answer(last);
    let words = texts.iter().map(|text| text.split_whitespace().count());
    let prompt_tokens: usize = words.sum();
    let completion_tokens = answer.split_whitespace().count();
    Json(json!({
        "id": "chatcmpl-example",
        "object": "chat.completion",
        "model": request.get("model"),
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": answer },
            "finish_reason": "stop",
        }],
        "usage": { "prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens, "total_tokens": prompt_tokens + completion_tokens },
    }))
    .into_response()
}

fn answer(prompt: &str) -> String {
    let has = |words: &str| prompt.contains(words);
    if has("Is this clear") {
        return if has("for example") {
            r#"{"valid": true, "score": 0.9, "reason": "clear", "suggestions": []}"#
        } else {
            r#"{"valid": false, "score": 0.4, "reason": "give an example", "suggestions": ["add one"]}"#
        }
        .to_owned();
    }
    if has("Explain ") {
        let example = if has("give an example") {
            ", for example a payment that is not made twice"
        } else {
            ""
        };
        return format!("What was done stays done after a crash{example}.");
    }
    if has("entities had errors") {
        return json!({
            "entities": [
                { "id": "ada", "type": "person", "name": "Ada" },
                { "id": "charles", "type": "person", "name": "Charles" },
                { "id": "london", "type": "place", "name": "London" },
            ],
            "relationships": [{ "from": "ada", "to": "charles", "type": "wrote to" }],
        })
        .to_string();
    }
    if has("Extract the entities") {
        return json!({ "entities": [{ "id": "ada", "type": "person" }] }).to_string();
    }
    if has("Generate JSON") {
        let profile = if has("email") {
            json!({ "name": "Ada Lovelace", "born": "1815", "email": "ada@example.org" })
        } else {
            json!({ "name": "Ada Lovelace", "born": "1815" })
        };
        return profile.to_string();
    }
    if has("function slug") {
        return if has("tests failed") {
            "def slug(text):\n    return \"-\".join(text.lower().split())\n"
        } else {
            "def slug(text):\n    return text.lower().replace(\" \", \"-\")\n"
        }
        .to_owned();
    }
    format!("I was asked: {prompt}")
}
