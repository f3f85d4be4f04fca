//! Texts that have to be literal: intrinsic functions of CloudFormation are not evaluated.
//!
//! Separate because every part of a delivery has such texts.

use delivery::document::findings::Message;
use delivery::document::reader::Cursor;

/// The help for a value that only the deployed stack has.
const DEPLOYED: &str = "write the value, or convert the outputs of aws events describe-rule, list-targets-by-rule, \
                        describe-api-destination and describe-connection";

/// Text that is literal; reports a value that only the deployed stack has.
pub(super) fn literal<'a>(at: &Cursor<'a>) -> Option<&'a str> {
    let is_dynamic = |text: &str| ["${", "{{resolve:"].iter().any(|sign| text.contains(sign));
    let is_deployed = at.is_mapping() || at.peek_text().is_some_and(is_dynamic);
    if is_deployed {
        return refuse_deployed(at);
    }
    at.text()
}

/// Reports a value that only the deployed stack has.
pub(super) fn refuse_deployed<T>(at: &Cursor<'_>) -> Option<T> {
    at.refuse(Message::new("only the deployed stack has this value").help(DEPLOYED))
}
