"""Problems made by code, and the judges of their answers: for training and for measuring."""
