package process

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == orphanMaker {
		makeOrphan()
	}
	goleak.VerifyTestMain(m)
}
