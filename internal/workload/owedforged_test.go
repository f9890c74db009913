package workload

import "testing"

func TestWhatAWorkloadDoesNotWantIsNotOwed(t *testing.T) {
	record := `{"secret/db":"k:owed@0/u","secret/other":"k:owed@0/u","secret/third":"k:owed@0/u"}`
	w, _ := Read(deployments, webDeployment("50", map[string]string{annotationRolled: record}), Reading{})
	if got := w.Owed(); len(got) != 0 {
		t.Errorf("a workload that wants nothing is asked about %v", got)
	}
}
