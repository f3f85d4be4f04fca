//! Events of other publishers: an independent library as the oracle. Events of other projects: `conformance`.

use std::sync::Arc;

use cloudevents::{AttributesReader as _, EventBuilder as _, EventBuilderV10};
use delivery::event::envelope::decode;
use delivery::event::{Element, Event, Input, Shape};
use proptest::option;
use proptest::prelude::*;

/// The one event of a text, or why it is invalid.
pub(crate) fn decode_one(text: &str, input: Input) -> Result<Event, String> {
    let body: Arc<str> = text.into();
    let [element] = &decode(&body, input)[..] else { panic!("one event is expected: {text}") };
    match element {
        Element::Event(event) => Ok(event.clone()),
        Element::Malformed { text, why } => {
            assert_eq!(*text, body, "what is malformed is kept whole");
            Err(why.to_string())
        }
    }
}

proptest! {
    #[test]
    fn an_event_built_by_an_independent_library_is_read_with_the_same_id_type_and_source(
        (id, ty, source) in ("\\PC{1,40}", ".{1,40}", "[a-z/:.#ü]{1,40}"),
        subject in option::of(".{0,20}"), flag in any::<bool>(), count in any::<i64>(), data in option::of(".{0,60}"),
    ) {
        let builder = EventBuilderV10::new().id(&id).ty(&ty).source(&source);
        let builder = builder.time("2026-11-20T07:03:00Z").extension("flag", flag).extension("count", count);
        let builder = subject.iter().fold(builder, EventBuilderV10::subject);
        let builder = data.iter().fold(builder, |builder, data| {
            builder.data("application/json", serde_json::json!({ "text": data }))
        });
        let built = builder.build().expect("a valid event");
        let text = serde_json::to_string(&built).expect("an event is JSON");
        for input in [Input::Auto, Input::CloudEvents] {
            let event = decode_one(&text, input).expect("a valid event");
            prop_assert_eq!(event.shape(), Shape::CloudEvent);
            prop_assert_eq!(event.text().as_ref(), text.as_str());
            let members = event.members();
            let (id, ty, source) = (members.id(), members.event_type(), members.source());
            prop_assert_eq!(id.as_deref(), Some(built.id()));
            prop_assert_eq!(ty.as_deref(), Some(built.ty()));
            prop_assert_eq!(source.as_deref(), Some(built.source().as_str()));
        }
    }

    #[test]
    fn no_text_makes_the_decoder_panic_or_lose_a_byte(text in "[\\[\\]{}\",:a-c0-9 \\\\ü]{0,40}") {
        for input in [Input::Auto, Input::CloudEvents, Input::EventGrid, Input::Custom, Input::Opaque] {
            for element in decode(&text.as_str().into(), input) {
                let kept = match &element {
                    Element::Event(event) => event.text(),
                    Element::Malformed { text, .. } => text,
                };
                prop_assert!(text.contains(kept.as_ref()));
            }
        }
    }
}

#[test]
fn endless_nesting_is_kept_and_does_not_exhaust_the_stack() {
    let data = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let text = format!(r#"{{"specversion":"1.0","id":"1","source":"s","type":"t","data":{data}}}"#);
    assert_eq!(decode_one(&text, Input::Auto).expect("an event").text().as_ref(), text);
}
