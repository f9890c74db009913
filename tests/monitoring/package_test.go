package monitoring

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the files that are made from code")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
