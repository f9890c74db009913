package plan

// Creation says which workloads roll when a source is created. It is the value of --roll-on-create.
type Creation string

// The values.
const (
	// CreateAuto rolls the workloads whose pods started without the source.
	CreateAuto Creation = "auto"
	// CreateAlways rolls all workloads, once for each object of the name, except those whose pods waited for it.
	CreateAlways Creation = "always"
	// CreateNever rolls none.
	CreateNever Creation = "never"
)

// Creations lists the values.
func Creations() []Creation { return []Creation{CreateAuto, CreateAlways, CreateNever} }

// Policy holds the choices of whoever operates the installation. The zero value means CreateAuto, and no roll when a source is deleted.
type Policy struct {
	Create Creation
	// Delete rolls workloads when a source is deleted that their pods can start without, once for each object.
	Delete bool
}
