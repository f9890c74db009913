package inspect

import "errors"

// errMissing is wrapped if the API server has no workload with a given name, or does not serve its kind.
var errMissing = errors.New("there is no")
