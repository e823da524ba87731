"""Arguments and receipts on the page: labels are for people, data stays exactly what it is."""

from django.utils import translation

from agentruns.page.readable import fields_of


def test_the_name_of_a_file_keeps_its_case() -> None:
    [files] = fields_of({"files": {"numbers/q3.csv": "month"}})
    assert (files.label, files.text) == ("Files", "numbers/q3.csv: month")


def test_the_labels_of_a_mail_are_in_the_language_of_the_reader() -> None:
    with translation.override("zh-hans"):
        fields = fields_of({"body": "Hello", "to": "bo@team.example"}, order=["to", "body"])
    assert [field.label for field in fields] == ["收件人", "正文"]


def test_a_label_that_nobody_knows_is_shown_by_its_own_name() -> None:
    [field] = fields_of({"message_id": "1"})
    assert field.label == "Message id"
