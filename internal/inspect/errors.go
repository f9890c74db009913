package inspect

import "errors"

// errMissing is wrapped if the API server has no workload with a given name, or does not serve its kind, or if there is no
// dead letter with a given id.
var errMissing = errors.New("there is no")
