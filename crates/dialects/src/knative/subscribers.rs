//! Reads the subscribers in the `spec` of a channel, which controllers write there from
//! Subscriptions.
//!
//! Separate because an export of a cluster has both. Subscribers are read only if the files have no
//! Subscription of the channel, because nothing else then shows where the channel's events are
//! sent.

use super::super::translation::{Translated, Translation};
use super::Reader;
use super::address::{self, ResolvedAddress};
use super::object::{Metadata, Object};
use delivery::document::findings::Message;
use delivery::document::reader::{Cursor, Fields};
use delivery::native::LeftOut;
use delivery::subscription::kinds::names;
use delivery::subscription::name::{SubscriptionName, TopicName};

/// Paths of the subscribers, in the newest version and in an older one.
const PATHS: [&str; 2] = ["spec.subscribers", "spec.subscribable.subscribers"];

impl<'a> Reader<'a, '_> {
    /// Reads the subscribers of a channel without Subscriptions.
    pub(super) fn read_subscribers(&self, object: &Object<'a>, translated: &mut Translated<'a>) {
        let list = PATHS.iter().find_map(|path| object.document.peek(path));
        let Some(list) = list.filter(|list| !list.is_null()) else { return };
        let subscribers = list.list().unwrap_or_default();
        if let Some(subscribed) = self.subscribed.get(&object.topic) {
            let missing = subscribers.len().saturating_sub(*subscribed);
            if missing > 0 {
                let message =
                    format!("no file has the Subscriptions of {missing} of these subscribers");
                list.warn(Message::new(message).help(
                    "add them to the files; subscribers without a Subscription are not read",
                ));
            }
            return;
        }
        if !subscribers.is_empty() {
            let message =
                "the Subscriptions of this channel are missing: its subscribers are read instead";
            list.warn(Message::new(message).help("add the Subscriptions to the files"));
        }
        for (index, at) in subscribers.iter().enumerate() {
            let read = at.result_or_error(|| {
                at.mapping(|fields| self.subscriber(fields, index, object)).flatten()
            });
            match read {
                Ok(subscription) => translated.subscriptions.push(subscription),
                Err(error) => {
                    let TopicName { namespace, topic } = &object.topic;
                    let name = name_of(at, index);
                    let name = [namespace, topic, &name].map(String::as_str);
                    translated.left_out.push(LeftOut::at(at, &name, error));
                }
            }
        }
    }

    fn subscriber(
        &self,
        fields: &Fields<'a>,
        index: usize,
        object: &Object<'a>,
    ) -> Option<Translation> {
        fields.accept(&["generation"]);
        let uid = fields.given("uid");
        let name =
            uid.map_or_else(|| Some(name_of(fields.parent(), index)), |uid| names::read(&uid))?;
        let name = SubscriptionName { topic: object.topic.clone(), name };
        let Some(to) = either(fields, "subscriberUri", "subscriberURI") else {
            return fields.parent().refuse("subscriberUri is missing");
        };
        let asked_of = |audience, authorities| address::asked(fields, [audience, authorities]);
        let asked = asked_of("subscriberAudience", "subscriberCACerts");
        let to = to.text().and_then(|text| self.addresses.of_uri((text, to)));
        let to = to.map(|to| ResolvedAddress { asked, ..to });
        let asked = asked_of("replyAudience", "replyCACerts");
        let reply = either(fields, "replyUri", "replyURI");
        if reply.is_none() {
            asked.warn_unused("there is no replyUri");
        }
        let reply = reply.and_then(|at| self.addresses.of_uri((at.text()?, at)));
        let reply = reply.map(|reply| ResolvedAddress { asked, ..reply });
        let parent = self.parents.get(&object.topic)?.clone()?;
        let mut partial = self.partial(fields, to, object, Some((object.topic.clone(), parent)))?;
        let destinations = self.addresses.destinations;
        partial.reply_key = reply.as_ref().map(|reply| reply.key.clone());
        partial.reply = reply.and_then(|reply| {
            let at = reply.at.clone();
            Some((reply.reply(destinations)?, Some(at)))
        });
        let at = fields.parent();
        partial.translate(at, (&name, at), Metadata::default(), &self.stock, destinations)
    }
}

/// Returns the name of the subscriber at this index: its `uid`, or a name such as `subscriber-1` if
/// it has no `uid`.
fn name_of(at: &Cursor<'_>, index: usize) -> String {
    match at.text_at("uid") {
        "" => format!("subscriber-{}", index + 1),
        uid => uid.to_owned(),
    }
}

/// Returns the field `name`, or the field with the older spelling `old` if there is no `name`.
fn either<'a>(fields: &Fields<'a>, name: &'static str, old: &'static str) -> Option<Cursor<'a>> {
    fields.given(name).or_else(|| fields.given(old))
}
