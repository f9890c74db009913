package program

import "testing"

func TestCodeIsWhatIsMappedOfTheProgramAndNeverWritten(t *testing.T) {
	const program = "/usr/bin/watcher"
	for _, tt := range []struct {
		name, line string
		from, size uintptr
		ok         bool
	}{
		{"code", "00400000-01a00000 r-xp 00000000 fe:00 42   /usr/bin/watcher\n", 0x400000, 0x1600000, true},
		{"constants", "01a00000-02f00000 r--p 01600000 fe:00 42   /usr/bin/watcher\n", 0x1a00000, 0x1500000, true},
		{"data", "02f00000-03000000 rw-p 02b00000 fe:00 42   /usr/bin/watcher\n", 0, 0, false},
		{"the code of another file", "7f0000000000-7f0000001000 r-xp 00000000 fe:00 43   /lib/libc.so\n", 0, 0, false},
		{"what the kernel maps", "7ffff7fc1000-7ffff7fc3000 r-xp 00000000 00:00 0   [vdso]\n", 0, 0, false},
		{"memory", "c000000000-c000400000 rw-p 00000000 00:00 0 \n", 0, 0, false},
		{"no range", "x-y r-xp 00000000 fe:00 42   /usr/bin/watcher\n", 0, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			from, size, ok := codeOf(program, tt.line)
			if from != tt.from || size != tt.size || ok != tt.ok {
				t.Errorf("got %#x, %#x, %t; want %#x, %#x, %t", from, size, ok, tt.from, tt.size, tt.ok)
			}
		})
	}
}
