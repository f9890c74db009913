package inspect

import "errors"

// errMissing is wrapped when the API server has no workload of a name, or does not serve its kind.
var errMissing = errors.New("there is no")
