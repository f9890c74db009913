package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// templates are the files in which an owner of the project says who and where it is, with what stands for that until then.
var templates = []struct{ file, placeholder, want string }{
	{"MAINTAINERS.md", "@OWNER", "the account of each maintainer"},
	{".github/CODEOWNERS", "@OWNER", "the account of each maintainer"},
	{"README.md", "@REPOSITORY", "the owner and the name of the repository, as in keyturn/keyturn"},
}

// filled reports which of the templates nobody has filled in.
func (r release) filled() error {
	for _, template := range templates {
		content, err := os.ReadFile(filepath.Join(r.root, template.file))
		if err != nil {
			return err
		}
		if bytes.Contains(content, []byte(template.placeholder)) {
			return fmt.Errorf("%s: got %s, want %s: fill it in and commit", template.file, template.placeholder, template.want)
		}
	}
	return nil
}
