package main

import (
	"testing"

	"github.com/keyturn/keyturn/tests/testkit/flagpages"
)

func TestReferenceOfTheFlagsIsWhatTheCodeSays(t *testing.T) {
	flagpages.Check(t, "projector", "The flags of the projector", "", newCommand(0))
}
