//! Generated clients send what generated servers read, under the names of the wire.

use crate::defects::d42_enum_case::client::types::Order;
use crate::over_http::{REACHED, Served};
use crate::positive;
use crate::stub::hooks::Hooks;

/// The status of an answer that the document does not name: what a fixture's handler gives.
macro_rules! status {
    ($answer:expr) => {
        match $answer.await {
            Err(progenitor_client::Error::UnexpectedResponse(answer)) => answer.status().as_u16(),
            other => panic!("{other:?}"),
        }
    };
}

/// What did not arrive under its name would be missing, and what is no word of the enumeration refused: 400.
#[tokio::test]
async fn parameters_and_words_of_any_name_are_sent() {
    use positive::client_names::client::{Client, types};
    let served = Served::new(positive::client_names::server::dispatch::description);
    let client = Client::new(&format!("http://{}", served.server.local_addr()), Hooks);
    let build = |send: &str, order| {
        let build = client
            .build()
            .new_path(7)
            .send_path(send)
            .client_query(true)
            .body_query(1);
        build.page_size(2).page_size_header(3).order(order)
    };
    assert_eq!(status!(build("abc", types::Order::Asc2).send()), REACHED.0);
    assert_eq!(
        status!(build("abc", types::Order::Desc).by(types::BuildBy::Id2).send()),
        REACHED.0
    );
    let rebuild = types::Build {
        order: types::Order::Desc2,
        usual: types::Order::Desc2,
        many: vec![types::Order::Asc2],
    };
    assert_eq!(
        serde_json::to_string(&rebuild).unwrap(),
        r#"{"many":["ASC"],"order":"DESC","usual":"DESC"}"#
    );
    assert_eq!(
        status!(client.rebuild().new_path(7).send_path("abc").body(rebuild).send()),
        REACHED.0
    );
}

#[test]
fn words_that_differ_only_in_case_are_words_of_their_own() {
    for (word, value) in [("asc", Order::Asc), ("ASC", Order::Asc2)] {
        assert_eq!(
            (value.to_string().as_str(), word.parse::<Order>().unwrap()),
            (word, value)
        );
        assert_eq!(serde_json::to_value(value).unwrap(), word);
    }
}

#[tokio::test]
async fn each_item_of_a_list_in_a_form_is_sent() {
    use positive::lists::client::{Client, types};
    let served = Served::new(positive::lists::server::dispatch::description);
    let client = Client::new(&format!("http://{}", served.server.local_addr()), Hooks);
    let send = |tags: &[&str]| {
        let tag = tags.iter().map(|tag| tag.parse().unwrap()).collect();
        let name = "a & b".into();
        client.send_form().body(types::SendFormBody { name, tag })
    };
    assert_eq!(status!(send(&["one", "two=2"]).send()), REACHED.0);
    assert_eq!(status!(send(&[]).send()), REACHED.0);
    // At most two.
    assert_eq!(status!(send(&["one", "two", "three"]).send()), 400);
}

#[tokio::test]
async fn parts_are_sent_as_their_caller_writes_them() {
    use positive::parts::client::Client;
    let served = Served::new(positive::parts::server::dispatch::description);
    let client = Client::new(&format!("http://{}", served.server.local_addr()), Hooks);
    let body = "--x\r\nContent-Disposition: form-data; name=\"photo\"\r\n\r\nabc\r\n--x--\r\n";
    let with = |content_type: &str| client.add_photo().content_type(content_type).body(body);
    assert_eq!(status!(with("multipart/form-data; boundary=x").send()), REACHED.0);
    assert_eq!(status!(with("multipart/form-data").send()), 400);
}

#[test]
fn a_decimal_number_goes_over_the_wire_as_it_was_written() {
    use positive::client_decimals::client::{DecimalNumber, types};
    // 18 digits, of which a binary number keeps 16; and a second decimal, of which it knows nothing.
    let text = concat!(
        r#"{"all":[1.10,-0.000001],"by_code":{"A":123456789.123456789},"either":2.85,"may":2.50,"must":0.1,"#,
        r#""named":12345678901234567.8,"usual":0.25}"#
    );
    let read: types::Readings = serde_json::from_str(text).unwrap();
    assert_eq!(read.by_code["A"].to_string(), "123456789.123456789");
    assert_eq!(read.may.unwrap().0, rust_decimal::Decimal::new(250, 2));
    assert_eq!(read.none, None);
    assert_eq!(serde_json::to_string(&read).unwrap(), text);

    // By way of a value, which has made a binary number of it.
    let value: serde_json::Value = serde_json::from_str("2.85").unwrap();
    let number: DecimalNumber = serde_json::from_value(value).unwrap();
    assert_eq!(number.to_string(), "2.85");
    for (text, number) in [("285e-2", "2.85"), ("-1.5E+2", "-150"), ("0", "0"), ("7", "7")] {
        assert_eq!(serde_json::from_str::<DecimalNumber>(text).unwrap().to_string(), number);
    }
}

#[test]
fn what_is_no_decimal_number_is_refused_and_nothing_is_rounded() {
    use positive::client_decimals::client::{DecimalNumber, types};
    let of = |text: &str| serde_json::from_str::<DecimalNumber>(text);
    let thirty_digits = "1.23456789012345678901234567890";
    for text in [
        r#""2.85""#,
        "{}",
        r#"{"a":1}"#,
        "[1]",
        "true",
        "null",
        thirty_digits,
        "1e40",
        "1e-40",
    ] {
        assert!(of(text).is_err(), "{text}");
    }
    // The same where serde looks at the value first.
    let either = |text: &str| serde_json::from_str::<types::Either>(text);
    assert!(matches!(either(r#""2.85""#), Ok(types::Either::String(_))));
    assert!(either("{}").is_err() && either("[1]").is_err() && either("true").is_err());
}
