package spec

// FileChange is what a call changed in one file of the run's directory. Contents are blobs of the run.
type FileChange struct {
	Path   string    `msgpack:"p" json:"path"` // relative to the directory, with slashes
	Before FileState `msgpack:"b,omitempty" json:"before"`
	After  FileState `msgpack:"a,omitempty" json:"after"`
}

// FileState is a file at one moment. The zero FileState is a file that does not exist.
type FileState struct {
	// Mode is that of the file, with the bit of regular files, so that it is never 0 for one that exists.
	Mode uint32 `msgpack:"m,omitempty" json:"mode,omitempty"`
	// SHA256 is the hash of the content; "": it is not known.
	SHA256 string `msgpack:"h,omitempty" json:"sha256,omitempty"`
	// Ref names the blob with the content; "": the content was not kept. It differs from SHA256 if secrets in
	// the content are masked.
	Ref  string `msgpack:"r,omitempty" json:"ref,omitempty"`
	Size int64  `msgpack:"z,omitempty" json:"size,omitempty"`
}

// Exists reports whether there was a file.
func (s FileState) Exists() bool { return s.Mode != 0 }
