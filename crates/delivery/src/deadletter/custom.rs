//! Event Grid, "delivery event formats", custom schema: what the mapping says of the event, why and
//! when, then the payload as it was published.
//!
//! Fields that are not mapped: the id is the message's, the time is publication, the topic is
//! `namespace/topic`, and the rest is empty. An event of another shape tells them itself.

use super::about::About;
use super::eventgrid::{NAMES, STATUS};
use super::flat::Hidden;
use crate::delivery::DeadLetter;
use crate::event::Members;
use crate::event::json::Object;
use crate::event::mapping::{Mapped, Mapping};

/// The letter; `None` for text.
pub(super) fn element(about: &About<'_>) -> Option<String> {
    let event = about.event_json()?;
    let told = told(about.letter);
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let mut object = Object::default();
    object.text("id", &told.id);
    object.text("eventTime", &told.event_time);
    object.text("eventType", &text(&told.event_type));
    object.text("dataVersion", &text(&told.data_version));
    object.text("metadataVersion", "1");
    object.text("topic", &told.topic);
    object.text("subject", &text(&told.subject));
    about.five(&mut object, &NAMES, &about.letter.reason.to_string());
    about.status(&mut object, STATUS);
    about.lastmile(&mut object, &Hidden::default());
    object.raw("data", Some(event.get()));
    Some(object.finish())
}

/// What the mapping says of a custom event, and an event of another shape of itself.
fn told(letter: &DeadLetter) -> Mapped {
    if let Some(mapped) = &letter.mapped {
        return mapped.clone();
    }
    let members: Members<'_> = letter.delivery.event.members();
    let either =
        |names: [&str; 2]| names.into_iter().find_map(|name| members.text(name)).map(Into::into);
    let unmapped = letter.delivery.mapped(&Mapping::default());
    Mapped {
        id: members.id().map_or(unmapped.id, Into::into),
        topic: members.source().map_or(unmapped.topic, Into::into),
        event_time: either(["time", "eventTime"]).unwrap_or(unmapped.event_time),
        event_type: members.event_type().map(Into::into),
        subject: members.text("subject").map(Into::into),
        data_version: either(["dataversion", "dataVersion"]),
    }
}
