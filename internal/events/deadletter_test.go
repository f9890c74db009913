package events

import (
	"strings"
	"testing"
)

func TestADeadLetterHasTheMessageWithoutTheHeadersOfAServer(t *testing.T) {
	want := DeadLetter{
		Subject: "keyturn.v1.prod-eu.secret.shop.db", Reason: ReasonMalformed, Error: "größer", Seq: 7, Time: testTime,
		Header: map[string][]string{"ce-id": {"1"}},
	}
	letter := want
	letter.Header = map[string][]string{"ce-id": {"1"}, "Nats-TTL": {"1h"}, "nats-msg-id": {"1"}}
	letter.Error += "\n" + strings.Repeat("x", maxErrorText)
	want.Error = Shorten(letter.Error, maxErrorText)
	wantEqual(t, "what is read", want, parseDeadLetter(letter.headers(), nil))
	letter.Header["ce-name"] = []string{strings.Repeat("x", MaxHeaderSize)}
	want.Header = map[string][]string{}
	wantEqual(t, "of a header that is too large", want, parseDeadLetter(letter.headers(), nil))
}
