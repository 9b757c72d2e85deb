info extra
