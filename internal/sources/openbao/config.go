package openbao

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/keyturn/keyturn/internal/configfile"
)

// configuration is the content of the configuration file.
type configuration struct {
	Stores []storeConfig `json:"stores"`
}

// loadConfig reads the configuration file.
func loadConfig(path string) ([]storeConfig, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--openbao-config: reading: %w", err)
	}
	stores, err := parseConfig(content, os.Getenv)
	if err == nil {
		return stores, nil
	}
	var problems []error
	for line := range strings.SplitSeq(err.Error(), "\n") {
		problems = append(problems, fmt.Errorf("--openbao-config: %s: %s", path, line))
	}
	return nil, errors.Join(problems...)
}

// parseConfig decodes a configuration and reports everything that is wrong with it, one line each. getenv is os.Getenv.
func parseConfig(content []byte, getenv func(string) string) ([]storeConfig, error) {
	var c configuration
	if err := configfile.Decode(content, &c); err != nil {
		return nil, err
	}
	if len(c.Stores) == 0 {
		return nil, errors.New("stores: is empty, want at least one")
	}
	if len(c.Stores) == 1 {
		c.Stores[0].takeEnvironment(getenv)
	}
	var problems []error
	names := map[string]bool{}
	for i := range c.Stores {
		s := &c.Stores[i]
		at := "stores[" + strconv.Itoa(i) + "]"
		for _, problem := range s.resolve() {
			problems = append(problems, fmt.Errorf("%s.%w", at, problem))
		}
		if names[s.Name] {
			problems = append(problems, fmt.Errorf("%s.name: %q appears twice, want a name for each store", at, s.Name))
		}
		names[s.Name] = true
	}
	return c.Stores, errors.Join(problems...)
}
