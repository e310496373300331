//go:build !unix

package process

import "os"

// inputFile is a file that holds all of data before a program starts. The system removes it when it is closed, or
// when temporary files are cleared.
func inputFile(data []byte) (*os.File, error) {
	if len(data) == 0 {
		return os.Open(os.DevNull)
	}
	f, err := os.CreateTemp("", "troupe-stdin-")
	if err != nil {
		return nil, err
	}
	if _, err = f.Write(data); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
